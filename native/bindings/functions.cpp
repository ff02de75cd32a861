#include "functions.h"

#include "arguments.h"
#include "domain.h"
#include "event.h"
#include "listener.h"
#include "string_cache.h"
#include "wrapped.h"

namespace warpline::binding {

namespace {

const Signature g_mark("mark", 5, 0, {"message", "color", "domain", "category", "payload"});
const Signature g_push_range("push_range", 5, 0, {"message", "color", "domain", "category", "payload"});
const Signature g_start_range("start_range", 5, 0, {"message", "color", "domain", "category", "payload"});
const Signature g_pop_range("pop_range", 1, 0, {"domain"});
const Signature g_end_range("end_range", 1, 1, {"range_id"});
const Signature g_get_domain("get_domain", 1, 0, {"name"});

// Held by the program from start to end; knows its domain, so end_range() needs nothing else.
struct RangeId {
  PyObject_HEAD Domain *domain;
  std::atomic<nvtxRangeId_t> id;  // 0 once it has ended
};

// Reads a call. False with TypeError, also where nobody listens: a mistake must not wait for a profiler to show.
bool read(const Signature &signature, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
          Event *event) {
  if (kwnames == nullptr && nargs == 1 && PyUnicode_CheckExact(args[0])) [[likely]] {
    event->message = Py_NewRef(args[0]);
    return true;
  }
  Arguments arguments;
  return read_event_arguments(signature, args, nargs, kwnames, &arguments) && set_arguments(event, arguments);
}

// Sends an event; what `Send` returns comes back as its result in Python. Plain calls are not read where nobody listens.
template <PyObject *(*Send)(Event *, int32_t)>
PyObject *event_function(const Signature &signature, PyObject *const *args, Py_ssize_t nargs,
                         PyObject *kwnames) {
  const int32_t state = listener();
  if (state == 0 && kwnames == nullptr && (nargs == 0 || (nargs == 1 && PyUnicode_CheckExact(args[0])))) {
    Py_RETURN_NONE;
  }
  Transient t;
  if (!read(signature, args, nargs, kwnames, &t.event)) {
    return nullptr;
  }
  if (state == 0) {
    Py_RETURN_NONE;
  }
  return Send(&t.event, state);
}

PyObject *send_start(Event *event, int32_t state) {
  RangeId *made = PyObject_New(RangeId, &RangeIdType);
  if (made == nullptr) {
    return nullptr;
  }
  made->domain = event->domain;
  new (&made->id) std::atomic<nvtxRangeId_t>(start(event, state));
  return reinterpret_cast<PyObject *>(made);
}

PyObject *module_mark(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return event_function<send_mark>(g_mark, args, nargs, kwnames);
}

PyObject *module_push(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return event_function<send_push>(g_push_range, args, nargs, kwnames);
}

PyObject *module_start(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return event_function<send_start>(g_start_range, args, nargs, kwnames);
}

PyObject *module_pop(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  const int32_t state = listener();
  Domain *domain = g_default_domain;
  if (nargs != 0 || kwnames != nullptr) {
    Values<1> values;
    if (!values.read(g_pop_range, args, nargs, kwnames) || (domain = domain_named(values[0])) == nullptr) {
      return nullptr;
    }
  }
  if (state == 0) {
    Py_RETURN_NONE;
  }
  return depth_or_none(pop(domain, state));
}

PyObject *module_end(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<1> values;
  if (!values.read(g_end_range, args, nargs, kwnames)) {
    return nullptr;
  }
  PyObject *range = values[0];
  if (range == Py_None) {
    Py_RETURN_NONE;
  }
  if (!Py_IS_TYPE(range, &RangeIdType)) {
    PyErr_Format(PyExc_TypeError, "end_range() needs what start_range() returned, not %.100s",
                 Py_TYPE(range)->tp_name);
    return nullptr;
  }
  RangeId *open = reinterpret_cast<RangeId *>(range);
  const nvtxRangeId_t id = open->id.exchange(0);
  const int32_t state = listener();
  if (id != 0 && state > 0) {
    end(open->domain, state, id);
  }
  Py_RETURN_NONE;
}

PyObject *module_get_domain(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<1> values;
  if (!values.read(g_get_domain, args, nargs, kwnames)) {
    return nullptr;
  }
  return Py_XNewRef(reinterpret_cast<PyObject *>(domain_named(values[0])));
}

PyObject *module_attached(PyObject *, PyObject *) {
  return PyBool_FromLong(attached());
}

PyObject *module_look_again(PyObject *, PyObject *) {
  return PyBool_FromLong(look_again() > 0);
}

void range_dealloc(PyObject *o) {
  PyObject_Free(o);
}

PyObject *range_repr(PyObject *o) {
  return PyUnicode_FromFormat("<range %llu>",
                              static_cast<unsigned long long>(reinterpret_cast<RangeId *>(o)->id.load()));
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

}  // namespace

PyMethodDef g_functions[] = {
    {"mark", method(module_mark), kFast,
     "mark($module, /, message=None, color='blue', domain=None, category=None, payload=None)\n--\n\n"
     "Marks an instant. Arguments as for annotate."},
    {"push_range", method(module_push), kFast,
     "push_range($module, /, message=None, color='blue', domain=None, category=None, payload=None)\n--\n\n"
     "Opens a range on this thread. Returns its depth from 0 where a tool tells it, else None."},
    {"pop_range", method(module_pop), kFast,
     "pop_range($module, /, domain=None)\n--\n\n"
     "Closes the innermost range of this thread in `domain`. Returns the depth that is left, or None."},
    {"start_range", method(module_start), kFast,
     "start_range($module, /, message=None, color=None, domain=None, category=None, payload=None)\n--\n\n"
     "Opens a range that any thread may close. Returns an opaque id for end_range(), None where no tool "
     "listens."},
    {"end_range", method(module_end), kFast,
     "end_range($module, /, range_id)\n--\n\nCloses a range that start_range() opened; None is allowed."},
    {"get_domain", method(module_get_domain), kFast,
     "get_domain($module, /, name=None)\n--\n\nThe domain `name`; the same object for the same name."},
    {"attached", module_attached, METH_NOARGS,
     "attached($module, /)\n--\n\nTrue when a tool listens. Asking does not keep one from attaching later."},
    {"look_again", module_look_again, METH_NOARGS,
     "look_again($module, /)\n--\n\nLooks for a tool once more where none was found. True when one listens "
     "now."},
    {"wrap", method(wrap), METH_FASTCALL,
     "wrap($module, annotation, func, name, /)\n--\n\nThe decorated function, bare."},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject RangeIdType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warpline.nvtx._binding.RangeId",
    .tp_basicsize = sizeof(RangeId),
    .tp_dealloc = range_dealloc,
    .tp_repr = range_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "An open range, for end_range() on any thread.",
};

}  // namespace warpline::binding
