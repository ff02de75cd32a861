// Finds an interpreter's functions.
#include "capi.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace warplens::agent::python {

CApi g_python{};

namespace {

std::atomic<bool> g_found{false};

template <typename Pointer>
bool find(Pointer &out, const char *name, const char *earlier_name) {
  void *found = dlsym(RTLD_DEFAULT, name);
  found = found != nullptr ? found : dlsym(RTLD_DEFAULT, earlier_name);
  out = reinterpret_cast<Pointer>(found);
  return found != nullptr;
}

bool fill(CApi &out) {
  bool whole = true;
#define WARPLENS_FIND(result, name, parameters)                                  \
  out.name = reinterpret_cast<result(*) parameters>(dlsym(RTLD_DEFAULT, #name)); \
  whole = whole && out.name != nullptr;
  WARPLENS_PYTHON_FUNCTIONS(WARPLENS_FIND)
#undef WARPLENS_FIND
  whole = find(out.unchecked_thread, "PyThreadState_GetUnchecked", "_PyThreadState_UncheckedGet") && whole;
  whole =
      find(out.new_code_extra, "PyUnstable_Eval_RequestCodeExtraIndex", "_PyEval_RequestCodeExtraIndex") &&
      whole;
  whole = find(out.code_extra, "PyUnstable_Code_GetExtra", "_PyCode_GetExtra") && whole;
  whole = find(out.set_code_extra, "PyUnstable_Code_SetExtra", "_PyCode_SetExtra") && whole;
  find(out.lock_mutex, "PyMutex_Lock", "");
  find(out.unlock_mutex, "PyMutex_Unlock", "");
  find(out.park, "_PyParkingLot_Park", "");
  whole = find(out.code_type, "PyCode_Type", "") && whole;
  whole = find(out.function_type, "PyFunction_Type", "") && whole;
  return find(out.none, "_Py_NoneStruct", "") && whole;
}

uint32_t version_of(const char *text) {
  char *dot = nullptr;
  unsigned long major = std::strtoul(text, &dot, 10);
  unsigned long minor = *dot == '.' ? std::strtoul(dot + 1, nullptr, 10) : 0;
  return static_cast<uint32_t>(major << 8 | (minor & 0xff));
}

}  // namespace

const CApi *find_capi() {
  if (g_found.load(std::memory_order_acquire)) {
    return &g_python;
  }
  if (dlsym(RTLD_DEFAULT, "PySys_AddAuditHook") == nullptr) {
    return nullptr;
  }
  CApi found{};
  if (!fill(found)) {
    return nullptr;
  }
  const char *text = found.Py_GetVersion();
  found.version = version_of(text);
  found.free_threaded = std::strstr(text, "free-threading") != nullptr;
  g_python = found;
  g_found.store(true, std::memory_order_release);
  return &g_python;
}

}  // namespace warplens::agent::python
