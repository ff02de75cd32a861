#include "functions.h"

#include "arguments.h"
#include "domain.h"
#include "event.h"
#include "listener.h"
#include "string_cache.h"
#include "wrapped.h"

namespace warpline::binding {

namespace {

// Held by the program from start to end; knows its domain, so end_range() needs nothing else.
struct RangeId {
  PyObject_HEAD Domain *domain;
  std::atomic<nvtxRangeId_t> id;  // 0 once it has ended
};

// One event for the length of a call.
class Transient {
 public:
  Transient() { init_event(&event, g_default_domain, nullptr); }
  ~Transient() { clear_event(&event); }
  Transient(const Transient &) = delete;
  Transient &operator=(const Transient &) = delete;
  Event event;
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

bool trivial(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return kwnames == nullptr && (nargs == 0 || (nargs == 1 && PyUnicode_CheckExact(args[0])));
}

PyObject *module_mark(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  const int32_t state = listener();
  if (state == 0 && trivial(args, nargs, kwnames)) {
    Py_RETURN_NONE;
  }
  Transient t;
  if (!read(g_mark, args, nargs, kwnames, &t.event)) {
    return nullptr;
  }
  if (state > 0) {
    mark(&t.event, state);
  }
  Py_RETURN_NONE;
}

PyObject *module_push(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  const int32_t state = listener();
  if (state == 0 && trivial(args, nargs, kwnames)) {
    Py_RETURN_NONE;
  }
  Transient t;
  if (!read(g_push_range, args, nargs, kwnames, &t.event)) {
    return nullptr;
  }
  if (state == 0) {
    Py_RETURN_NONE;
  }
  return depth_or_none(push(&t.event, state));
}

PyObject *module_pop(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  const int32_t state = listener();
  Domain *domain = g_default_domain;
  if (nargs != 0 || kwnames != nullptr) {
    PyObject *name = nullptr;
    if (!read_arguments(g_pop_range, args, nargs, kwnames, &name) ||
        (domain = domain_named(name)) == nullptr) {
      return nullptr;
    }
  }
  if (state == 0) {
    Py_RETURN_NONE;
  }
  return depth_or_none(pop(domain, state));
}

PyObject *module_start(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  const int32_t state = listener();
  if (state == 0 && trivial(args, nargs, kwnames)) {
    Py_RETURN_NONE;
  }
  Transient t;
  if (!read(g_start_range, args, nargs, kwnames, &t.event)) {
    return nullptr;
  }
  if (state == 0) {
    Py_RETURN_NONE;
  }
  RangeId *made = PyObject_New(RangeId, &RangeIdType);
  if (made == nullptr) {
    return nullptr;
  }
  made->domain = t.event.domain;
  new (&made->id) std::atomic<nvtxRangeId_t>(start(&t.event, state));
  return reinterpret_cast<PyObject *>(made);
}

PyObject *module_end(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static constexpr const char *names[] = {"range_id"};
  static Signature signature = {"end_range", 1, 1, names};
  PyObject *range = nullptr;
  if (kwnames == nullptr && nargs == 1) [[likely]] {
    range = args[0];
  } else if (!intern(&signature) || !read_arguments(signature, args, nargs, kwnames, &range)) {
    return nullptr;
  } else if (range == nullptr) {
    PyErr_SetString(PyExc_TypeError, "end_range() missing 1 required positional argument: 'range_id'");
    return nullptr;
  }
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
    nvtxDomainRangeEnd(handle_for(open->domain, state), id);
  }
  Py_RETURN_NONE;
}

PyObject *module_get_domain(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  static constexpr const char *names[] = {"name"};
  static Signature signature = {"get_domain", 1, 1, names};
  PyObject *name = nullptr;
  if (!intern(&signature) || !read_arguments(signature, args, nargs, kwnames, &name)) {
    return nullptr;
  }
  return Py_XNewRef(reinterpret_cast<PyObject *>(domain_named(name)));
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
