// The type Profile: turns the interpreter's call events into ranges.
#include "profile.h"

#include <cstddef>
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif

#include "event.h"
#include "frame.h"

namespace warplens::binding {

Domain *g_profile_domain = nullptr;

namespace {

std::atomic<uint32_t> g_serial{0};
int g_yield_value = -1;
int g_resume = -1;

void push_call(const Profile *self, ThreadCalls *calls, const void *frame, bool c_function,
               nvtxStringHandle_t label) {
  if (!reserve_call(calls)) {
    return;
  }
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.color = 0x0000FF;
  attributes.messageType = label != nullptr ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_UNKNOWN;
  attributes.message.registered = label;
  calls->calls[calls->count++] = {frame, self->serial, c_function};
  tell_task();
  nvtxDomainRangePushEx(g_profile_domain->handle, &attributes);
}

void pop_calls(ThreadCalls *calls, int down_to, int32_t state) {
  tell_task();
  while (calls->count > down_to) {
    --calls->count;
    if (state > 0) {
      nvtxDomainRangePop(handle_for(g_profile_domain, state));
    }
  }
}

// Closes the call that returned, and whatever a profiler that was enabled in between kept from being closed.
void close_call(const Profile *self, ThreadCalls *calls, const void *frame, bool c_function, int32_t state) {
  for (int at = calls->count - 1; at >= 0 && calls->calls[at].profile == self->serial; --at) {
    const OpenCall &call = calls->calls[at];
    if (call.frame == frame && call.c_function == c_function) {
      pop_calls(calls, at, state);
      return;
    }
    if (c_function) {
      return;
    }
  }
}

void close_all(const Profile *self, ThreadCalls *calls, int32_t state) {
  int at = calls->count;
  while (at > 0 && calls->calls[at - 1].profile == self->serial) {
    --at;
  }
  if (at < calls->count) {
    pop_calls(calls, at, state);
  }
}

// True where the code goes on after a yield or await: it was called before.
bool goes_on(PyFrameObject *frame, PyCodeObject *code) {
#if PY_VERSION_HEX >= 0x030B0000
  const int last = PyFrame_GetLasti(frame);
  PyObject *bytes = last >= 0 ? PyCode_GetCode(code) : nullptr;
  bool on = false;
  if (bytes != nullptr && last + 1 < PyBytes_GET_SIZE(bytes)) {
    const unsigned char *at = reinterpret_cast<const unsigned char *>(PyBytes_AS_STRING(bytes)) + last;
    on = at[0] == g_yield_value || (at[0] == g_resume && (at[1] & 3) != 0);
  }
  Py_XDECREF(bytes);
  PyErr_Clear();
  return on;
#else
  (void)code;
  return frame->f_lasti >= 0;
#endif
}

void on_call(Profile *self, ThreadCalls *calls, PyFrameObject *frame, int32_t state) {
  PyCodeObject *code = PyFrame_GetCode(frame);
  const CallLabel &label = label_for(self, calls, code, nullptr, state);
  const bool resumed = (code->co_flags & kSuspends) != 0 && goes_on(frame, code);
  push_call(self, calls, frame, false, resumed ? label.resumed : label.called);
  Py_DECREF(code);
}

void on_c_call(Profile *self, ThreadCalls *calls, PyFrameObject *frame, PyObject *function, int32_t state) {
  if (!PyCFunction_Check(function)) {
    return;
  }
  PyObject *bound = PyCFunction_GET_SELF(function);
  if (bound != nullptr && Py_IS_TYPE(bound, &ProfileType)) {
    return;  // enable() and disable() are no part of what is looked at
  }
  const PyMethodDef *definition = reinterpret_cast<PyCFunctionObject *>(function)->m_ml;
  push_call(self, calls, frame, true, label_for(self, calls, nullptr, definition, state).called);
}

}  // namespace

int on_profile_event(PyObject *o, PyFrameObject *frame, int what, PyObject *argument) {
  Profile *self = as_profile(o);
  ThreadCalls *calls = thread_calls();
  if (calls == nullptr) {
    return 0;
  }
  const int32_t state = listener();
  if (!self->active.load(std::memory_order_relaxed)) [[unlikely]] {
    const KeptError error;
    Py_INCREF(o);
    close_all(self, calls, state);
    restore_here(self);
    Py_DECREF(o);
    return 0;
  }
  switch (what) {
    case PyTrace_CALL:
      if (state > 0) {
        on_call(self, calls, frame, state);
      }
      break;
    case PyTrace_RETURN:
      close_call(self, calls, frame, false, state);
      break;
    case PyTrace_C_CALL:
      if (state > 0 && self->c_functions) {
        on_c_call(self, calls, frame, argument, state);
      }
      break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
      close_call(self, calls, frame, true, state);
      break;
    default:
      break;
  }
  return 0;
}

namespace {

int opcode(PyObject *map, const char *name) {
  PyObject *number = map != nullptr ? PyMapping_GetItemString(map, name) : nullptr;
  const int value = number != nullptr ? static_cast<int>(PyLong_AsLong(number)) : -1;
  Py_XDECREF(number);
  PyErr_Clear();
  return value;
}

void learn_opcodes() {
  if (g_yield_value < 0) {
    PyObject *module = PyImport_ImportModule("opcode");
    PyObject *map = module != nullptr ? PyObject_GetAttrString(module, "opmap") : nullptr;
    PyErr_Clear();
    g_resume = opcode(map, "RESUME");
    g_yield_value = opcode(map, "YIELD_VALUE");
    Py_XDECREF(map);
    Py_XDECREF(module);
  }
}

PyObject *profile_enable(PyObject *o, PyObject *) {
  Profile *self = as_profile(o);
  if (self->active.load() || is_muted()) {
    Py_RETURN_NONE;
  }
  if (g_profile_domain == nullptr) {
    PyObject *name = PyUnicode_FromString("nvtx.py");
    g_profile_domain = name != nullptr ? domain_named(name) : nullptr;
    Py_XDECREF(name);
    if (g_profile_domain == nullptr) {
      return nullptr;
    }
    use(g_profile_domain, 1);
  }
  learn_opcodes();
  if (!self->active.exchange(true)) {  // another thread may have been quicker
    install_everywhere(self);
  }
  Py_RETURN_NONE;
}

PyObject *profile_disable(PyObject *o, PyObject *) {
  Profile *self = as_profile(o);
  if (self->active.exchange(false)) {
    unhook_new_threads(self);
    restore_here(self);
    ThreadCalls *calls = thread_calls();
    if (calls != nullptr) {
      close_all(self, calls, listener());
    }
  }
  Py_RETURN_NONE;
}

PyObject *profile_enter(PyObject *o, PyObject *) {
  PyObject *done = profile_enable(o, nullptr);
  Py_XDECREF(done);
  return done != nullptr ? Py_NewRef(o) : nullptr;
}

PyObject *profile_exit(PyObject *o, PyObject *const *, Py_ssize_t) {
  Py_XDECREF(profile_disable(o, nullptr));
  Py_RETURN_FALSE;
}

PyObject *profile_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"linenos", "annotate_cfuncs", nullptr};
  int linenos = 1, c_functions = 1;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|pp:Profile", const_cast<char **>(names), &linenos,
                                   &c_functions)) {
    return nullptr;
  }
  Profile *self = as_profile(type->tp_alloc(type, 0));
  if (self != nullptr) {
    self->serial = ++g_serial;
    self->linenos = linenos != 0;
    self->c_functions = c_functions != 0;
    self->labels = PyDict_New();
    self->before = PyDict_New();
    if (self->labels == nullptr || self->before == nullptr) {
      Py_CLEAR(self);
    }
  }
  return reinterpret_cast<PyObject *>(self);
}

int profile_traverse(PyObject *o, visitproc visit, void *arg) {
  Profile *self = as_profile(o);
  Py_VISIT(self->labels);
  Py_VISIT(self->before);
  Py_VISIT(self->new_hook);
  Py_VISIT(self->old_hook);
  return 0;
}

int profile_clear(PyObject *o) {
  Profile *self = as_profile(o);
  Py_CLEAR(self->new_hook);
  Py_CLEAR(self->old_hook);
  return 0;
}

void profile_dealloc(PyObject *o) {
  PyObject_GC_UnTrack(o);
  profile_clear(o);
  Py_CLEAR(as_profile(o)->labels);
  Py_CLEAR(as_profile(o)->before);
  Py_TYPE(o)->tp_free(o);
}

PyObject *get_linenos(PyObject *o, void *) {
  return PyBool_FromLong(as_profile(o)->linenos);
}
PyObject *get_c_functions(PyObject *o, void *) {
  return PyBool_FromLong(as_profile(o)->c_functions);
}

PyMethodDef methods[] = {
    {"enable", profile_enable, METH_NOARGS, "enable($self, /)\n--\n\nEvery call from here on is a range."},
    {"disable", profile_disable, METH_NOARGS,
     "disable($self, /)\n--\n\nEnds that, and the ranges that are open. The profiler that was there before "
     "is back."},
    {"__enter__", profile_enter, METH_NOARGS, "enable()"},
    {"__exit__", method(profile_exit), METH_FASTCALL, "disable()"},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"linenos", get_linenos, nullptr, "Whether file and line are part of the names.", nullptr},
    {"annotate_cfuncs", get_c_functions, nullptr, "Whether calls of C functions are ranges too.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

PyTypeObject ProfileType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx.Profile",
    .tp_basicsize = sizeof(Profile),
    .tp_dealloc = profile_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_doc =
        "Profile(linenos=True, annotate_cfuncs=True)\n--\n\n"
        "Makes every call a range of the domain 'nvtx.py', between enable() and disable() or in a with "
        "block.\n\n"
        "linenos: names are 'file.py:LINE(function)' with the line of the def; without, 'function'.\n"
        "annotate_cfuncs: calls of C functions are ranges too, by their name.\n\n"
        "All threads are annotated; on other threads, ranges that are open at disable() end with their next "
        "call or\n"
        "return. A generator or coroutine is a range while it runs: the first is named as above, each "
        "further one,\n"
        "after a yield or await, is named '… (resumed)', so that the number of calls is right.",
    .tp_traverse = profile_traverse,
    .tp_clear = profile_clear,
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = profile_new,
};

bool init_profile() {
  return init_calls() && PyType_Ready(&ProfileType) == 0;
}

}  // namespace warplens::binding
