// Installs a Profile on threads, and restores their earlier profiler.
#include "frame.h"
#include "profile.h"

namespace warplens::binding {

namespace {

// Another profiler of a thread.
struct Before {
  Py_tracefunc function;
  PyObject *argument;
};

PyObject *thread_key(PyThreadState *state) {
  return PyLong_FromUnsignedLongLong(state->id);
}

void free_before(PyObject *capsule) {
  Before *before = static_cast<Before *>(PyCapsule_GetPointer(capsule, nullptr));
  Py_XDECREF(before->argument);
  PyMem_Free(before);
}

// Remembers the profiler that a thread has now.
void remember(Profile *self, PyThreadState *state) {
  const bool own =
      state->c_profilefunc == on_profile_event && state->c_profileobj == reinterpret_cast<PyObject *>(self);
  if (state->c_profilefunc == nullptr || own) {  // its own: not yet given back after the last time
    return;
  }
  Before *before = static_cast<Before *>(PyMem_Malloc(sizeof(Before)));
  if (before == nullptr) {
    return;
  }
  *before = {state->c_profilefunc, Py_XNewRef(state->c_profileobj)};
  PyObject *capsule = PyCapsule_New(before, nullptr, free_before);
  PyObject *key = thread_key(state);
  if (key == nullptr || capsule == nullptr || PyDict_SetItem(self->before, key, capsule) < 0) {
    PyErr_Clear();
  }
  Py_XDECREF(key);
  Py_XDECREF(capsule);
}

#if PY_VERSION_HEX < 0x030C0000
// The threads that run already. Later CPythons have a call for that.
void install_now(Profile *self) {
  PyThreadState *here = thread_state();
  for (PyThreadState *at = PyInterpreterState_ThreadHead(here->interp); at != nullptr;
       at = PyThreadState_Next(at)) {
    remember(self, at);
    if (_PyEval_SetProfile(at, on_profile_event, reinterpret_cast<PyObject *>(self)) < 0) {
      PyErr_Clear();
    }
  }
}
#else
void install_now(Profile *self) {
  PyThreadState *here = thread_state();
#if defined(Py_GIL_DISABLED)
  remember(self, here);  // what other threads have cannot be read while they run
#else
  for (PyThreadState *at = PyInterpreterState_ThreadHead(here->interp); at != nullptr;
       at = PyThreadState_Next(at)) {
    remember(self, at);
  }
#endif
  PyEval_SetProfileAllThreads(on_profile_event, reinterpret_cast<PyObject *>(self));
}
#endif

// The first event of a thread that has begun since: it goes to the hook, the others to on_profile_event.
PyObject *new_thread(PyObject *o, PyObject *const *args, Py_ssize_t nargs) {
  Profile *self = as_profile(o);
  if (!self->active.load(std::memory_order_relaxed)) {
    PyEval_SetProfile(nullptr, nullptr);
    Py_RETURN_NONE;
  }
  PyEval_SetProfile(on_profile_event, o);
  if (nargs == 3 && PyFrame_Check(args[0]) && PyUnicode_Check(args[1]) &&
      PyUnicode_CompareWithASCIIString(args[1], "call") == 0) {
    on_profile_event(o, reinterpret_cast<PyFrameObject *>(args[0]), PyTrace_CALL, Py_None);
  }
  Py_RETURN_NONE;
}

PyMethodDef new_thread_method = {"new_thread", method(new_thread), METH_FASTCALL, nullptr};

PyObject *threading_module() {
  PyObject *module = PyImport_ImportModule("threading");
  PyErr_Clear();
  return module;
}

// Set without threading.setprofile(), which another profiler would see as a call.
void hook_new_threads(Profile *self) {
  PyObject *threading = threading_module();
  if (threading == nullptr) {
    return;
  }
  Py_XSETREF(self->old_hook, PyObject_GetAttrString(threading, "_profile_hook"));
  Py_XSETREF(self->new_hook, PyCFunction_New(&new_thread_method, reinterpret_cast<PyObject *>(self)));
  if (self->new_hook != nullptr) {
    PyObject_SetAttrString(threading, "_profile_hook", self->new_hook);
  }
  PyErr_Clear();
  Py_DECREF(threading);
}

}  // namespace

void restore_here(Profile *self) {
  PyThreadState *state = thread_state();
  if (state->c_profilefunc != on_profile_event || state->c_profileobj != reinterpret_cast<PyObject *>(self)) {
    return;
  }
  PyObject *key = thread_key(state);
  PyObject *capsule = key != nullptr ? find_in(self->before, key) : nullptr;
  PyErr_Clear();
  const Before *before =
      capsule != nullptr ? static_cast<Before *>(PyCapsule_GetPointer(capsule, nullptr)) : nullptr;
  PyEval_SetProfile(before != nullptr ? before->function : nullptr,
                    before != nullptr ? before->argument : nullptr);
  if (capsule != nullptr && PyDict_DelItem(self->before, key) < 0) {
    PyErr_Clear();
  }
  Py_XDECREF(capsule);
  Py_XDECREF(key);
}

void install_everywhere(Profile *self) {
  hook_new_threads(self);
  install_now(self);
}

void unhook_new_threads(Profile *self) {
  PyObject *threading = threading_module();
  PyObject *now = threading != nullptr ? PyObject_GetAttrString(threading, "_profile_hook") : nullptr;
  if (now != nullptr && now == self->new_hook) {
    PyObject_SetAttrString(threading, "_profile_hook", self->old_hook != nullptr ? self->old_hook : Py_None);
  }
  PyErr_Clear();
  Py_XDECREF(now);
  Py_XDECREF(threading);
  Py_CLEAR(self->old_hook);
  Py_CLEAR(self->new_hook);
}

}  // namespace warplens::binding
