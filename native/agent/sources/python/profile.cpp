// Traces every call of a Python function.
// It uses sys.monitoring if there is one, else a profiler of each thread.
#include "agent/python/memory/objects.h"
#include "calls.h"

namespace warplens::agent::python {
namespace {

constexpr char kCapsule[] = "warplens.profile";
constexpr int kCall = 0;  // PyTrace_CALL, PyTrace_RETURN
constexpr int kReturn = 3;

int on_profile(Object *self, Object *frame, int what, Object *result) {
  Thread *thread = this_thread();
  if ((what != kCall && what != kReturn) || thread == nullptr) {
    return 0;
  }
  auto *interpreter = static_cast<Interpreter *>(g_python.PyCapsule_GetPointer(self, kCapsule));
  Held code(g_python.PyFrame_GetCode(frame));
  const CodeFacts *facts = known_code(*interpreter, code.get());
  if (facts == nullptr && what == kCall) [[unlikely]] {
    KeptError kept;
    facts = meet_code(*interpreter, code.get());
  }
  if (facts != nullptr && what == kCall) {
    enter_call(*thread, *facts);
  } else if (facts != nullptr) {
    leave_call(*thread, *facts, result == nullptr);
  }
  return 0;
}

// What threading makes the profiler of each new thread: it makes way for the faster one at once.
Object *on_new_thread(Object *self, Object *) {
  g_python.PyEval_SetProfile(on_profile, self);
  return held(g_python.none);
}

MethodDef g_method{"profile", reinterpret_cast<void *>(on_new_thread), kArguments, nullptr};

}  // namespace

bool install_calls(Interpreter &interpreter) {
  if (has_monitoring()) {
    return listen_to_all(interpreter);
  }
  Held self(g_python.PyCapsule_New(&interpreter, kCapsule, nullptr));
  if (!self) {
    tell_failure("the profiler");
    return false;
  }
  g_python.PyEval_SetProfile(on_profile, self.get());
  return true;
}

void calls_in(Interpreter &interpreter, std::string_view module_name, Object *module) {
  if (has_monitoring() || module_name != "threading") {
    return;
  }
  Held self(g_python.PyCapsule_New(&interpreter, kCapsule, nullptr));
  Held function(self ? g_python.PyCMethod_New(&g_method, self.get(), nullptr, nullptr) : nullptr);
  Held done(function ? call_method(module, "setprofile", {function.get()}) : nullptr);
  if (!done) {
    tell_failure("threading.setprofile");
  }
}

}  // namespace warplens::agent::python
