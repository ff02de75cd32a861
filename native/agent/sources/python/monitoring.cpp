// Receives events of sys.monitoring (Python 3.12 and later).
// Chosen functions cost the others nothing; all functions cost less than with a profiler.
#include <string>

#include "agent/python/memory/objects.h"
#include "calls.h"

namespace warplens::agent::python {
namespace {

constexpr char kCapsule[] = "warplens.calls";
// Not those of debuggers, coverage and profilers: programs may want to use theirs.
constexpr int kTools[] = {4, 3};

Interpreter *interpreter_of(Object *self) {
  return static_cast<Interpreter *>(g_python.PyCapsule_GetPointer(self, kCapsule));
}

bool wants_all() {
  return (cpu_settings().flags & kCpuPythonCalls) != 0;
}

Object *begins(Object *self, Object *const *arguments, Size) {
  Interpreter *interpreter = interpreter_of(self);
  Thread *thread = this_thread();
  const CodeFacts *code = known_code(*interpreter, arguments[0]);
  if (code == nullptr && wants_all()) [[unlikely]] {
    KeptError kept;
    code = meet_code(*interpreter, arguments[0]);
  }
  if (code != nullptr && thread != nullptr) {
    enter_call(*thread, *code);
  }
  return held(g_python.none);
}

Object *ends(Object *self, Object *const *arguments, bool failed) {
  const CodeFacts *code = known_code(*interpreter_of(self), arguments[0]);
  Thread *thread = this_thread();
  if (code != nullptr && thread != nullptr) {
    leave_call(*thread, *code, failed);
  }
  return held(g_python.none);
}

Object *returns(Object *self, Object *const *arguments, Size) {
  return ends(self, arguments, false);
}

Object *unwinds(Object *self, Object *const *arguments, Size) {
  return ends(self, arguments, true);
}

MethodDef g_begins{"begins", reinterpret_cast<void *>(begins), kFast, nullptr};
MethodDef g_returns{"returns", reinterpret_cast<void *>(returns), kFast, nullptr};
MethodDef g_unwinds{"unwinds", reinterpret_cast<void *>(unwinds), kFast, nullptr};

constexpr const char *kLocal[] = {"PY_START", "PY_RESUME", "PY_RETURN", "PY_YIELD"};

int64_t event(const Interpreter &interpreter, const char *name) {
  Held events(attribute(interpreter.monitoring, "events"));
  return events ? number_attribute(events.get(), name) : 0;
}

int64_t local_events(const Interpreter &interpreter) {
  int64_t all = 0;
  for (const char *name : kLocal) {
    all |= event(interpreter, name);
  }
  return all;
}

Object *number(int64_t value) {
  return g_python.PyLong_FromLongLong(value);
}

bool take_tool(Interpreter &interpreter) {
  if (interpreter.tool >= 0) {
    return true;
  }
  Object *monitoring = g_python.PyDict_GetItemString(g_python.PyImport_GetModuleDict(), "sys");
  interpreter.monitoring =
      monitoring != nullptr ? g_python.PyObject_GetAttrString(monitoring, "monitoring") : nullptr;
  Held name(g_python.PyUnicode_FromStringAndSize("warplens", 8));
  for (int tool : kTools) {
    Held id(number(tool));
    Held taken(interpreter.monitoring != nullptr
                   ? call_method(interpreter.monitoring, "use_tool_id", {id.get(), name.get()})
                   : nullptr);
    if (taken) {
      interpreter.tool = tool;
      return true;
    }
    g_python.PyErr_Clear();
  }
  cpu_notice(
      CpuNotice::bootstrap, 0,
      "sys.monitoring: its tools 3 and 4 are taken by others; calls and exceptions of Python are missing");
  return false;
}

bool hear(Interpreter &interpreter, const char *name, MethodDef &method) {
  Held self(g_python.PyCapsule_New(&interpreter, kCapsule, nullptr));
  Held function(self ? g_python.PyCMethod_New(&method, self.get(), nullptr, nullptr) : nullptr);
  Held tool(number(interpreter.tool));
  Held which(number(event(interpreter, name)));
  Held before(
      call_method(interpreter.monitoring, "register_callback", {tool.get(), which.get(), function.get()}));
  return static_cast<bool>(before);
}

bool switch_on(Interpreter &interpreter, int64_t more) {
  Held tool(number(interpreter.tool));
  Held now_on(call_method(interpreter.monitoring, "get_events", {tool.get()}));
  Held all(number(more | (now_on ? g_python.PyLong_AsLongLong(now_on.get()) : 0)));
  Held done(call_method(interpreter.monitoring, "set_events", {tool.get(), all.get()}));
  return static_cast<bool>(done);
}

}  // namespace

bool listen_to_calls(Interpreter &interpreter) {
  if (!take_tool(interpreter)) {
    return false;
  }
  bool done = hear(interpreter, "PY_START", g_begins) && hear(interpreter, "PY_RESUME", g_begins) &&
              hear(interpreter, "PY_THROW", g_begins) && hear(interpreter, "PY_RETURN", g_returns) &&
              hear(interpreter, "PY_YIELD", g_returns) && hear(interpreter, "PY_UNWIND", g_unwinds) &&
              switch_on(interpreter, event(interpreter, "PY_UNWIND") | event(interpreter, "PY_THROW"));
  if (!done) {
    tell_failure("sys.monitoring");
  }
  return done;
}

bool listen_to_code(Interpreter &interpreter, Object *code) {
  Held tool(number(interpreter.tool));
  Held events(number(local_events(interpreter)));
  Held done(call_method(interpreter.monitoring, "set_local_events", {tool.get(), code, events.get()}));
  g_python.PyErr_Clear();
  return static_cast<bool>(done);
}

bool listen_to_all(Interpreter &interpreter) {
  return listen_to_calls(interpreter) && switch_on(interpreter, local_events(interpreter));
}

bool listen_to_raised(Interpreter &interpreter, MethodDef &callback) {
  if (!take_tool(interpreter)) {
    return false;
  }
  bool done = hear(interpreter, "RAISE", callback) && switch_on(interpreter, event(interpreter, "RAISE"));
  if (!done) {
    tell_failure("sys.monitoring");
  }
  return done;
}

}  // namespace warplens::agent::python
