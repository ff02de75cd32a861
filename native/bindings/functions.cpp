// mark, push_range, pop_range, start_range and end_range of the module.
#include "functions.h"

#include <new>

#include "bindings/ranges/event.h"
#include "bindings/ranges/wrapped.h"
#include "bindings/values/arguments.h"
#include "bindings/values/string_cache.h"
#include "domain.h"
#include "end_functions.h"
#include "listener.h"
#include "naming.h"
#include "operators.h"

namespace warplens::binding {

namespace {

const Signature g_mark("mark", 5, 0, {"message", "color", "domain", "category", "payload"});
const Signature g_push_range("push_range", 5, 0, {"message", "color", "domain", "category", "payload"});
const Signature g_start_range("start_range", 5, 0, {"message", "color", "domain", "category", "payload"});
const Signature g_pop_range("pop_range", 1, 0, {"domain", "message", "color", "category", "payload"});
const Signature g_end_range("end_range", 1, 1, {"range_id", "message", "color", "category", "payload"});
const Signature g_name_category("name_category", 3, 2, {"id", "name", "domain"});
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
  if (nargs == 0 && kwnames == nullptr) [[likely]] {
    if (state == 0) {
      Py_RETURN_NONE;
    }
    return depth_or_none(pop(g_default_domain, state));
  }
  Values<5> values;
  if (!values.read(g_pop_range, args, nargs, kwnames)) {
    return nullptr;
  }
  Domain *domain = domain_named(values[0]);
  return domain != nullptr ? pop_with_attributes(domain, state, values.at + 1) : nullptr;
}

PyObject *module_end(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<5> values;
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
  return end_with_attributes(open->domain, listener(), id, values.at + 1);
}

PyObject *module_name_category(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<3> values;
  if (!values.read(g_name_category, args, nargs, kwnames)) {
    return nullptr;
  }
  Domain *domain = domain_named(values[2]);
  return domain != nullptr ? name_category(domain, values[0], values[1]) : nullptr;
}

PyObject *module_mute(PyObject *, PyObject *) {
  mute();
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
     "pop_range($module, /, domain=None, *, message=None, color=None, category=None, payload=None)\n--\n\n"
     "Closes the innermost range of this thread in `domain`; attributes given here are reported at its end "
     "and "
     "overrides what "
     "it said when it began. Returns the depth that is left, or None."},
    {"start_range", method(module_start), kFast,
     "start_range($module, /, message=None, color=None, domain=None, category=None, payload=None)\n--\n\n"
     "Opens a range that any thread may close. Returns an opaque id for end_range(), None where no tool "
     "listens."},
    {"end_range", method(module_end), kFast,
     "end_range($module, /, range_id, *, message=None, color=None, category=None, payload=None)\n--\n\n"
     "Closes a range that start_range() opened; None is allowed. What else is given overrides what the range "
     "said when "
     "it began."},
    {"get_domain", method(module_get_domain), kFast,
     "get_domain($module, /, name=None)\n--\n\nThe domain `name`; the same object for the same name."},
    {"name_category", method(module_name_category), kFast,
     "name_category($module, /, id, name, domain=None)\n--\n\n"
     "Names a category by its number; events take it by either."},
    {"name_thread", method(name_thread), kFast,
     "name_thread($module, /, name, tid=None)\n--\n\n"
     "Names a thread: this one, or that with the system's id `tid` (threading.Thread.native_id)."},
    {"name_cuda_device", method(name_cuda_device), kFast,
     "name_cuda_device($module, /, device, name)\n--\n\nNames a CUDA device by its ordinal."},
    {"name_cuda_stream", method(name_cuda_stream), kFast,
     "name_cuda_stream($module, /, stream, name)\n--\n\n"
     "Names a CUDA stream: a handle, or a stream of torch, CuPy, Numba or cuda.core."},
    {"name_cuda_event", method(name_cuda_event), kFast,
     "name_cuda_event($module, /, event, name)\n--\n\nNames a CUDA event: a handle, or an object that has "
     "one."},
    {"name_cuda_context", method(name_cuda_context), kFast,
     "name_cuda_context($module, /, context, name)\n--\n\n"
     "Names a CUDA context: a handle, or an object that has one."},
    {"mute", module_mute, METH_NOARGS,
     "mute($module, /)\n--\n\nFrom now on nothing is recorded (NVTX_DISABLE)."},
    {"attached", module_attached, METH_NOARGS,
     "attached($module, /)\n--\n\nTrue when a tool listens. Asking does not keep one from attaching later."},
    {"look_again", module_look_again, METH_NOARGS,
     "look_again($module, /)\n--\n\nLooks for a tool once more where none was found. True when one listens "
     "now."},
    {"emit_operators", emit_operators, METH_O,
     "emit_operators($module, path, /)\n--\n\n"
     "Emits operators of PyTorch in this thread, of the loaded libtorch_cpu.so at `path`. Returns a number "
     "for "
     "stop_operators()."},
    {"stop_operators", stop_operators, METH_O,
     "stop_operators($module, number, /)\n--\n\nEnds emit_operators(), in the same thread."},
    {"wrap", method(wrap), METH_FASTCALL,
     "wrap($module, annotation, func, name, /)\n--\n\nThe decorated function, bare."},
    {nullptr, nullptr, 0, nullptr},
};

PyTypeObject RangeIdType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx._binding.RangeId",
    .tp_basicsize = sizeof(RangeId),
    .tp_dealloc = range_dealloc,
    .tp_repr = range_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "An open range, for end_range() on any thread.",
};

}  // namespace warplens::binding
