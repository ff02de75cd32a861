// The type annotate: its arguments, its with block, and the function that it decorates.
#include "annotate.h"

#include <new>
#include <utility>

#include "bindings/values/arguments.h"
#include "bindings/values/attributes.h"
#include "bindings/values/string_cache.h"
#include "context_methods.h"

namespace warplens::binding {

namespace {

#if !defined(Py_GIL_DISABLED)
// `with annotate(...)` makes and frees one object per block; a few are kept.
constexpr int kKept = 32;
Annotate *g_kept[kKept];
int g_kept_count = 0;
#endif

Annotate *as_annotate(PyObject *o) {
  return reinterpret_cast<Annotate *>(o);
}

inline Annotate *allocate() {
#if !defined(Py_GIL_DISABLED)
  if (g_kept_count > 0) [[likely]] {
    Annotate *self = g_kept[--g_kept_count];
    revive(reinterpret_cast<PyObject *>(self), &AnnotateType);
    return self;
  }
#endif
  return PyObject_GC_New(Annotate, &AnnotateType);
}

PyObject *annotate_vectorcall(PyObject *, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  const bool plain = kwnames == nullptr && nargs == 1 && PyUnicode_CheckExact(args[0]);
  Arguments arguments;
  if (!plain && !read_event_arguments(g_annotate, args, nargs, kwnames, &arguments)) {
    return nullptr;
  }
  Annotate *self = allocate();
  if (self == nullptr) {
    return nullptr;
  }
  init_event(&self->event, g_default_domain, plain ? args[0] : nullptr);
  new (&self->entered) Entered;
  self->late = nullptr;
  if (!plain && !set_arguments(&self->event, arguments)) {
    Py_DECREF(self);
    return nullptr;
  }
  track_payload(reinterpret_cast<PyObject *>(self), &self->event);
  return reinterpret_cast<PyObject *>(self);
}

}  // namespace

PyObject *make_annotate(Domain *domain, const Arguments &arguments) {
  Annotate *self = allocate();
  if (self == nullptr) {
    return nullptr;
  }
  init_event(&self->event, domain, nullptr);
  new (&self->entered) Entered;
  self->late = nullptr;
  if (!set_arguments(&self->event, arguments)) {
    Py_DECREF(self);
    return nullptr;
  }
  track_payload(reinterpret_cast<PyObject *>(self), &self->event);
  return reinterpret_cast<PyObject *>(self);
}

namespace {

// Subclasses come in through new and init.
PyObject *annotate_new(PyTypeObject *type, PyObject *, PyObject *) {
  PyObject *self = type->tp_alloc(type, 0);
  if (self != nullptr) {
    init_event(&as_annotate(self)->event, g_default_domain, nullptr);
    new (&as_annotate(self)->entered) Entered;
    as_annotate(self)->late = nullptr;
  }
  return self;
}

int annotate_init(PyObject *self, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"message", "color", "domain", "category", "payload", nullptr};
  PyObject *message = nullptr, *color = nullptr, *domain = nullptr, *category = nullptr, *payload = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOOOO:annotate", const_cast<char **>(names), &message,
                                   &color, &domain, &category, &payload)) {
    return -1;
  }
  if (!set_arguments(&as_annotate(self)->event, {message, color, domain, category, payload})) {
    return -1;
  }
  track_payload(self, &as_annotate(self)->event);
  return 0;
}

int annotate_traverse(PyObject *o, visitproc visit, void *arg) {
  WARPLENS_VISIT_EVENT(as_annotate(o)->event);
  Py_VISIT(as_annotate(o)->late);
  return 0;
}

int annotate_clear(PyObject *o) {
  set_payload(&as_annotate(o)->event, nullptr);
  Py_CLEAR(as_annotate(o)->late);
  return 0;
}

void annotate_dealloc(PyObject *o) {
  Annotate *self = as_annotate(o);
  PyObject_GC_UnTrack(o);
  leave_all(&self->entered);
  clear_event(&self->event);
  Py_CLEAR(self->late);
#if !defined(Py_GIL_DISABLED)
  if (Py_IS_TYPE(o, &AnnotateType) && g_kept_count < kKept) [[likely]] {
    g_kept[g_kept_count++] = self;
    return;
  }
#endif
  Py_TYPE(o)->tp_free(o);
}

// The payload that was set since, which is the caller's.
PyObject *take_late(Annotate *self) {
  PyObject *late = nullptr;
  WARPLENS_LOCK(reinterpret_cast<PyObject *>(self));
  late = self->late;
  self->late = nullptr;
  WARPLENS_UNLOCK();
  return late;
}

[[gnu::noinline]] void begin_with_late(Annotate *self) {
  PyObject *late = take_late(self);
  set_payload(&self->event, late);
  track_payload(reinterpret_cast<PyObject *>(self), &self->event);
  Py_XDECREF(late);
}

[[gnu::noinline]] void end_with_late(Annotate *self, int32_t state) {
  PyObject *late = take_late(self);
  if (state > 0) {
    Transient last;
    set_payload(&last.event, late);
    exit_range(&self->entered, self->event.domain, state, &last.event);
  }
  Py_XDECREF(late);
}

PyObject *get_payload(PyObject *o, void *) {
  Annotate *self = as_annotate(o);
  PyObject *late = nullptr;
  WARPLENS_LOCK(o);
  late = Py_XNewRef(self->late);
  WARPLENS_UNLOCK();
  return late != nullptr ? late : none_if_null(Said(&self->event).payload);
}

int assign_payload(PyObject *o, PyObject *value, void *) {
  Annotate *self = as_annotate(o);
  PyObject *late = value != nullptr ? value : Py_None;
  PyObject *old = Py_NewRef(late);
  WARPLENS_LOCK(o);
  std::swap(self->late, old);
  if (PyObject_IS_GC(late) && !PyObject_GC_IsTracked(o)) {
    PyObject_GC_Track(o);
  }
  WARPLENS_UNLOCK();
  Py_XDECREF(old);
  return 0;
}

PyObject *get_domain(PyObject *o, void *) {
  return Py_NewRef(reinterpret_cast<PyObject *>(as_annotate(o)->event.domain));
}

PyObject *get_attributes(PyObject *o, void *) {
  return show_attributes(o, &as_annotate(o)->event);
}

PyGetSetDef properties[] = {
    {"domain", get_domain, nullptr, "The Domain that the range belongs to.", nullptr},
    {"attributes", get_attributes, nullptr,
     "The EventAttributes of the range; a change applies from the next entry on.", nullptr},
    {"payload", get_payload, assign_payload,
     "The payload. Set within the with block, it is recorded with the end of the range.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyObject *annotate_enter(PyObject *self) {
  const int32_t state = listener();
  if (as_annotate(self)->late != nullptr) [[unlikely]] {
    begin_with_late(as_annotate(self));
  }
  if (state > 0) {
    enter_range(&as_annotate(self)->entered, &as_annotate(self)->event, state);
  } else {
    as_annotate(self)->entered.unheard.store(true, std::memory_order_relaxed);
  }
  return Py_NewRef(self);
}

PyObject *annotate_exit(PyObject *self) {
  const int32_t state = listener();
  if (as_annotate(self)->late != nullptr) [[unlikely]] {
    end_with_late(as_annotate(self), state);
    Py_RETURN_FALSE;
  }
  if (state > 0) {
    exit_range(&as_annotate(self)->entered, as_annotate(self)->event.domain, state);
  }
  Py_RETURN_FALSE;
}

PyObject *annotate_call(PyObject *self, PyObject *args, PyObject *kwargs) {
  PyObject *function = nullptr;
  static const char *names[] = {"func", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:annotate", const_cast<char **>(names), &function)) {
    return nullptr;
  }
  if (is_muted() && PyCallable_Check(function)) {
    return Py_NewRef(function);
  }
  PyObject *module = PyImport_ImportModule("warplens.nvtx._decorate");
  if (module == nullptr) {
    return nullptr;
  }
  PyObject *decorate = PyObject_GetAttrString(module, "decorate");
  Py_DECREF(module);
  if (decorate == nullptr) {
    return nullptr;
  }
  drives(decorate);
  PyObject *decorated = PyObject_CallFunctionObjArgs(decorate, self, function, nullptr);
  Py_DECREF(decorate);
  return decorated;
}

PyObject *init_arguments(Annotate *self) {
  const Said e(&self->event);
  return Py_BuildValue("(NNNNN)", none_if_null(e.message), none_if_null(e.color),
                       none_if_null(e.domain->name), none_if_null(e.category), none_if_null(e.payload));
}

PyObject *annotate_reduce(PyObject *self, PyObject *) {
  PyObject *arguments = init_arguments(as_annotate(self));
  return arguments == nullptr ? nullptr : Py_BuildValue("(ON)", Py_TYPE(self), arguments);
}

PyObject *annotate_repr(PyObject *self) {
  PyObject *arguments = init_arguments(as_annotate(self));
  if (arguments == nullptr) {
    return nullptr;
  }
  PyObject *text = PyUnicode_FromFormat("annotate%R", arguments);
  Py_DECREF(arguments);
  return text;
}

PyMethodDef methods[] = {
    {"__reduce__", annotate_reduce, METH_NOARGS, "Pickles as the arguments it was made with."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool init_annotate() {
  return PyType_Ready(&AnnotateType) == 0 &&
         add_context_methods(&AnnotateType, annotate_enter, annotate_exit);
}

PyTypeObject AnnotateType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx.annotate",
    .tp_basicsize = sizeof(Annotate),
    .tp_dealloc = annotate_dealloc,
    .tp_repr = annotate_repr,
    .tp_call = annotate_call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .tp_doc =
        "annotate(message=None, color=None, domain=None, category=None, payload=None)\n--\n\n"
        "A range around a with block, or around every call of a decorated function.\n\n"
        "message: its text; a decorated function's name by default.\n"
        "color: a name, 0xAARRGGBB or '#rrggbb'; blue by default.\n"
        "domain: the name of the domain that it belongs to.\n"
        "category: a name or a number, for grouping within the domain.\n"
        "payload: what to record with it: a number, text, bytes, an array, a dict, …, read anew at each "
        "entry.\n\n"
        "One object may be entered again and from many threads. Exceptions pass through.",
    .tp_traverse = annotate_traverse,
    .tp_clear = annotate_clear,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_init = annotate_init,
    .tp_new = annotate_new,
    .tp_vectorcall = annotate_vectorcall,
};

}  // namespace warplens::binding
