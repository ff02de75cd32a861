// Finds an interpreter's functions.
#include "capi.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace warpline::agent::python {

CApi g_python{};

namespace {

std::atomic<bool> g_found{false};

bool fill(CApi &out) {
  bool whole = true;
#define WARPLINE_FIND(result, name, parameters)                                  \
  out.name = reinterpret_cast<result(*) parameters>(dlsym(RTLD_DEFAULT, #name)); \
  whole = whole && out.name != nullptr;
  WARPLINE_PYTHON_FUNCTIONS(WARPLINE_FIND)
#undef WARPLINE_FIND
  void *unchecked = dlsym(RTLD_DEFAULT, "PyThreadState_GetUnchecked");
  unchecked = unchecked != nullptr ? unchecked : dlsym(RTLD_DEFAULT, "_PyThreadState_UncheckedGet");
  out.unchecked_thread = reinterpret_cast<void *(*)()>(unchecked);
  out.none = static_cast<Object *>(dlsym(RTLD_DEFAULT, "_Py_NoneStruct"));
  return whole && unchecked != nullptr && out.none != nullptr;
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

}  // namespace warpline::agent::python
