// Installs the audit hook that brings the agent into each interpreter.
// Python cannot remove an audit hook, so for foreign events it costs two comparisons.
#include "bootstrap.h"

#include <atomic>
#include <cstring>
#include <string_view>

#include "agent/hooks/cpu.h"
#include "agent/python/memory/objects.h"
#include "capi.h"

namespace warplens::agent::python {
namespace {

constexpr int64_t kMostInterpreters = 1024;  // later ones are left alone

void (*g_install)(void *interpreter, int64_t number);
std::atomic<uint64_t> g_seen[kMostInterpreters / 64];

// Whether it is our first time in the interpreter.
bool meet(int64_t number) {
  if (number < 0 || number >= kMostInterpreters) {
    return false;
  }
  uint64_t bit = uint64_t{1} << number % 64;
  return (g_seen[number / 64].fetch_or(bit) & bit) == 0;
}

void enter_interpreter() {
  if (g_python.unchecked_thread() == nullptr) {
    return;
  }
  void *interpreter = g_python.PyInterpreterState_Get();
  int64_t number = g_python.PyInterpreterState_GetID(interpreter);
  if (meet(number)) {
    g_install(interpreter, number);
  }
}

// The first of these comes as soon as an interpreter is whole: before `site`, which runs code of the user, or where there is none,
// before the program.
bool is_code(const char *event) {
  return event[0] == 'e' && std::strcmp(event, "exec") == 0;
}

bool is_run(const char *event) {
  return event[0] == 'c' && std::strncmp(event, "cpython.run_", 12) == 0;
}

std::atomic<void (*)(int64_t, Object *)> g_tell{nullptr};

void tell(void (*each)(int64_t, Object *), Object *arguments) {
  Object *code = g_python.PyTuple_Size(arguments) == 1 ? g_python.PyTuple_GetItem(arguments, 0) : nullptr;
  if (code != nullptr && g_python.unchecked_thread() != nullptr && is_exactly(code, g_python.code_type)) {
    each(g_python.PyInterpreterState_GetID(g_python.PyInterpreterState_Get()), code);
  }
}

// 3.15 calls itself initialized only once `site` has run.
bool is_site(Object *arguments) {
  Object *code = g_python.PyTuple_Size(arguments) == 1 ? g_python.PyTuple_GetItem(arguments, 0) : nullptr;
  Held file(code != nullptr ? attribute(code, "co_filename") : nullptr);
  Size size = 0;
  const char *text = file ? g_python.PyUnicode_AsUTF8AndSize(file.get(), &size) : nullptr;
  g_python.PyErr_Clear();
  std::string_view path = text != nullptr ? std::string_view(text, static_cast<size_t>(size)) : "";
  return path == "<frozen site>" || path.ends_with("/site.py");
}

bool is_whole(bool code, Object *arguments) {
  return g_python.Py_IsInitialized() != 0 ||
         (code && g_python.version >= 0x030f && g_python.unchecked_thread() != nullptr && is_site(arguments));
}

int on_audit(const char *event, Object *arguments, void *) {
  bool code = is_code(event);
  if ((code || is_run(event)) && is_whole(code, arguments)) {
    enter_interpreter();
    if (auto *each = code ? g_tell.load(std::memory_order_acquire) : nullptr) {
      tell(each, arguments);
    }
  }
  return 0;
}

}  // namespace

void tell_of_code(void (*each)(int64_t interpreter, Object *code)) {
  g_tell.store(each, std::memory_order_release);
}

bool begin_bootstrap(void (*install)(void *interpreter, int64_t number)) {
  g_install = install;
  const CApi *python = find_capi();
  return python != nullptr && python->PySys_AddAuditHook(on_audit, nullptr) == 0;
}

}  // namespace warplens::agent::python
