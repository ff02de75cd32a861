// The types of resources and synchronisation objects, and the calls that report their states.
#include "objects.h"

#include <nvtx3/nvToolsExtSync.h>

#include <new>

#include "bindings/ranges/tasks.h"
#include "bindings/values/arguments.h"
#include "bindings/values/string_cache.h"

namespace warplens::binding {

namespace {

const Signature g_create_resource("create_resource", 3, 2, {"name", "identifier", "kind"});
const Signature g_create_sync("create_sync", 1, 1, {"name"});

// NVTX's identifier types that hold on every system; others are given as their number.
struct ResourceKind {
  const char *name;
  int32_t type;
};
constexpr ResourceKind kKinds[] = {
    {"pointer", NVTX_RESOURCE_TYPE_GENERIC_POINTER},
    {"handle", NVTX_RESOURCE_TYPE_GENERIC_HANDLE},
    {"thread", NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE},
    {"pthread", NVTX_RESOURCE_TYPE_GENERIC_THREAD_POSIX},
};

// Both are made for a tool when first needed after it came.
struct Object {
  PyObject_HEAD Domain *domain;
  PyObject *name;
  std::atomic<int32_t> state;  // the listener that the handle belongs to
  void *handle;
  uint64_t identifier;  // resources only
  int32_t type;
  bool destroyed;
};

Object *as_object(PyObject *o) {
  return reinterpret_cast<Object *>(o);
}

template <typename Attributes>
void put_name(Object *self, Attributes *out, PyObject **holder) {
  out->messageType = NVTX_MESSAGE_TYPE_ASCII;
  out->message.ascii = utf8(self->name, holder);
}

void make_resource(Object *self) {
  PyObject *holder = nullptr;
  nvtxResourceAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_RESOURCE_ATTRIB_STRUCT_SIZE;
  attributes.identifierType = self->type;
  attributes.identifier.ullValue = self->identifier;
  put_name(self, &attributes, &holder);
  self->handle = nvtxDomainResourceCreate(self->domain->handle, &attributes);
  Py_XDECREF(holder);
}

void make_sync(Object *self) {
  PyObject *holder = nullptr;
  nvtxSyncUserAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE;
  put_name(self, &attributes, &holder);
  self->handle = nvtxDomainSyncUserCreate(self->domain->handle, &attributes);
  Py_XDECREF(holder);
}

// False where the tool takes no such objects, or this one is gone.
bool known(Object *self, int32_t state) {
  if (self->state.load(std::memory_order_acquire) != state) {
    const KeptError error;
    WARPLENS_LOCK(self);
    if (self->state.load(std::memory_order_relaxed) != state && !self->destroyed) {
      handle_for(self->domain, state);
      if (Py_IS_TYPE(reinterpret_cast<PyObject *>(self), &ResourceType)) {
        make_resource(self);
      } else {
        make_sync(self);
      }
      self->state.store(state, std::memory_order_release);
    }
    WARPLENS_UNLOCK();
  }
  return self->handle != nullptr && !self->destroyed;
}

template <typename Call>
PyObject *on(PyObject *o, Call call) {
  Object *self = as_object(o);
  const int32_t state = listener();
  if (state > 0 && known(self, state)) {
    tell_task();
    call(self);
  }
  Py_RETURN_NONE;
}

PyObject *acquire_start(PyObject *o, PyObject *) {
  return on(o, [](Object *s) { nvtxDomainSyncUserAcquireStart(static_cast<nvtxSyncUser_t>(s->handle)); });
}
PyObject *acquire_failed(PyObject *o, PyObject *) {
  return on(o, [](Object *s) { nvtxDomainSyncUserAcquireFailed(static_cast<nvtxSyncUser_t>(s->handle)); });
}
PyObject *acquire_success(PyObject *o, PyObject *) {
  return on(o, [](Object *s) { nvtxDomainSyncUserAcquireSuccess(static_cast<nvtxSyncUser_t>(s->handle)); });
}
PyObject *releasing(PyObject *o, PyObject *) {
  return on(o, [](Object *s) { nvtxDomainSyncUserReleasing(static_cast<nvtxSyncUser_t>(s->handle)); });
}

// Once: what a tool never heard of needs no end.
void end_object(Object *self) {
  const int32_t state = g_listener.load(std::memory_order_acquire);
  if (state > 0 && self->state.load(std::memory_order_acquire) == state && self->handle != nullptr &&
      !self->destroyed) {
    self->destroyed = true;
    if (Py_IS_TYPE(reinterpret_cast<PyObject *>(self), &ResourceType)) {
      nvtxDomainResourceDestroy(static_cast<nvtxResourceHandle_t>(self->handle));
    } else {
      nvtxDomainSyncUserDestroy(static_cast<nvtxSyncUser_t>(self->handle));
    }
  }
  self->destroyed = true;
}

PyObject *object_destroy(PyObject *o, PyObject *) {
  WARPLENS_LOCK(o);
  end_object(as_object(o));
  WARPLENS_UNLOCK();
  Py_RETURN_NONE;
}

PyObject *object_enter(PyObject *o, PyObject *) {
  return Py_NewRef(o);
}

PyObject *object_exit(PyObject *o, PyObject *) {
  object_destroy(o, nullptr);
  Py_RETURN_FALSE;
}

void object_dealloc(PyObject *o) {
  Object *self = as_object(o);
  use(self->domain, -1);
  Py_CLEAR(self->name);
  PyObject_Free(o);
}

PyObject *object_repr(PyObject *o) {
  return PyUnicode_FromFormat("<%s %R of %R>", Py_IS_TYPE(o, &ResourceType) ? "Resource" : "SyncObject",
                              as_object(o)->name, reinterpret_cast<PyObject *>(as_object(o)->domain));
}

PyObject *get_name(PyObject *o, void *) {
  return Py_NewRef(as_object(o)->name);
}
PyObject *get_domain(PyObject *o, void *) {
  return Py_NewRef(reinterpret_cast<PyObject *>(as_object(o)->domain));
}

PyGetSetDef properties[] = {
    {"name", get_name, nullptr, "Its name.", nullptr},
    {"domain", get_domain, nullptr, "The domain that it belongs to.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

#define WARPLENS_LIFE_METHODS                                                      \
  {"destroy", object_destroy, METH_NOARGS,                                         \
   "destroy($self, /)\n--\n\nSays that it is gone; more than once does nothing."}, \
      {"__enter__", object_enter, METH_NOARGS, "Itself."},                         \
      {"__exit__", object_exit, METH_VARARGS, "Destroys it."}, {                   \
    nullptr, nullptr, 0, nullptr                                                   \
  }

PyMethodDef resource_methods[] = {WARPLENS_LIFE_METHODS};

PyMethodDef sync_methods[] = {
    {"acquire_start", acquire_start, METH_NOARGS,
     "acquire_start($self, /)\n--\n\nThis thread begins to wait for it."},
    {"acquire_failed", acquire_failed, METH_NOARGS,
     "acquire_failed($self, /)\n--\n\nThis thread gave up waiting."},
    {"acquire_success", acquire_success, METH_NOARGS,
     "acquire_success($self, /)\n--\n\nThis thread has it now."},
    {"releasing", releasing, METH_NOARGS, "releasing($self, /)\n--\n\nThis thread is about to give it back."},
    WARPLENS_LIFE_METHODS};

Object *make(PyTypeObject *type, PyObject *domain, PyObject *name) {
  PyObject *text = text_argument(name, "name");
  Object *self = text != nullptr ? PyObject_New(Object, type) : nullptr;
  if (self == nullptr) {
    Py_XDECREF(text);
    return nullptr;
  }
  self->domain = reinterpret_cast<Domain *>(domain);
  use(self->domain, 1);
  self->name = text;
  new (&self->state) std::atomic<int32_t>(0);
  self->handle = nullptr;
  self->identifier = 0;
  self->type = 0;
  self->destroyed = false;
  return self;
}

// False with an exception.
bool kind_argument(PyObject *kind, int32_t *out) {
  *out = NVTX_RESOURCE_TYPE_GENERIC_POINTER;
  if (given(kind) == nullptr) {
    return true;
  }
  if (PyLong_Check(kind)) {
    *out = static_cast<int32_t>(PyLong_AsUnsignedLongMask(kind));
    return true;
  }
  for (const ResourceKind &known : kKinds) {
    if (PyUnicode_Check(kind) && PyUnicode_CompareWithASCIIString(kind, known.name) == 0) {
      *out = known.type;
      return true;
    }
  }
  PyErr_Format(PyExc_ValueError,
               "kind must be 'pointer', 'handle', 'thread', 'pthread' or a number of NVTX, not %R", kind);
  return false;
}

}  // namespace

PyObject *domain_create_resource(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<3> values;
  if (!values.read(g_create_resource, args, nargs, kwnames)) {
    return nullptr;
  }
  int32_t type = 0;
  PyObject *identifier = kind_argument(values[2], &type) ? PyNumber_Index(values[1]) : nullptr;
  Object *made = identifier != nullptr ? make(&ResourceType, self, values[0]) : nullptr;
  if (made != nullptr) {
    made->identifier = PyLong_AsUnsignedLongLongMask(identifier);
    made->type = type;
    const int32_t state = listener();
    if (state > 0) {
      known(made, state);
    }
  }
  Py_XDECREF(identifier);
  return reinterpret_cast<PyObject *>(made);
}

PyObject *domain_create_sync(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<1> values;
  if (!values.read(g_create_sync, args, nargs, kwnames)) {
    return nullptr;
  }
  Object *made = make(&SyncType, self, values[0]);
  const int32_t state = listener();
  if (made != nullptr && state > 0) {
    known(made, state);
  }
  return reinterpret_cast<PyObject *>(made);
}

PyTypeObject ResourceType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx.Resource",
    .tp_basicsize = sizeof(Object),
    .tp_dealloc = object_dealloc,
    .tp_repr = object_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc =
        "Something with a name for tools. Made by Domain.create_resource(); gone by destroy(), or at the end "
        "of a "
        "with block.",
    .tp_methods = resource_methods,
    .tp_getset = properties,
};

PyTypeObject SyncType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx.SyncObject",
    .tp_basicsize = sizeof(Object),
    .tp_dealloc = object_dealloc,
    .tp_repr = object_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "Something that threads wait for. Made by Domain.create_sync(); see nvtx.Lock for locks.",
    .tp_methods = sync_methods,
    .tp_getset = properties,
};

bool ready_objects() {
  return PyType_Ready(&ResourceType) == 0 && PyType_Ready(&SyncType) == 0;
}

}  // namespace warplens::binding
