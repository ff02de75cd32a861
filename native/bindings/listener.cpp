// Finds out whether an NVTX tool listens: -1 not looked yet, 0 none, from 1 on the number of the attachment.
//
// A new attachment has a new number. Handles and attributes remember the number that they were made
// for, so one comparison shows that they are of an earlier tool and must be made again.
#include "listener.h"

#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "bindings/ranges/tasks.h"
#include "bindings/values/compat.h"

namespace warplens::binding {

std::atomic<int32_t> g_listener{-1};
std::atomic<void (*)()> g_when_attached{nullptr};

namespace {

SlowMutex g_mutex;
std::atomic<bool> g_muted{false};
int32_t g_attachments = 0;
std::string g_announced;  // the announcement that the last look saw

std::string announcement() {
  const char *path = std::getenv(sizeof(void *) == 4 ? "NVTX_INJECTION32_PATH" : "NVTX_INJECTION64_PATH");
  return path != nullptr ? path : "";
}

auto &globals() {
  return NVTX_VERSIONED_IDENTIFIER(nvtxGlobals);
}

// After NVTX has initialised: a tool took at least one of the calls that make events.
bool someone_listens() {
  const auto &g = globals();
  return g.nvtxDomainRangePushEx_impl_fnptr != nullptr || g.nvtxDomainRangeStartEx_impl_fnptr != nullptr ||
         g.nvtxDomainMarkEx_impl_fnptr != nullptr;
}

// After NVTX has looked for a tool.
int32_t settle() {
  const int32_t state = someone_listens() ? ++g_attachments : 0;
  if (state > 0) {
    find_tasks(g_announced.c_str());
    if (auto *told = g_when_attached.load(); told != nullptr) {
      told();
    }
  }
  g_listener.store(state, std::memory_order_release);
  return state;
}

int32_t look() {
  g_announced = announcement();
  nvtxInitialize(nullptr);
  return settle();
}

int32_t look_again_locked() {
  const int32_t state = g_listener.load(std::memory_order_acquire);
  if (state > 0 || g_muted.load()) {
    return state;
  }
  auto &g = globals();
  if (g.initState == NVTX_INIT_STATE_COMPLETE) {
    // No tool was found, so every pointer is null and no call is under way: NVTX may start afresh. The tool that it
    // finds now fills in the pointers itself; those it leaves stay null, which is what NVTX would make of them.
    g.initState = NVTX_INIT_STATE_FRESH;
    g.nvtxInitialize_impl_fnptr = nullptr;
    g_announced = announcement();
    NVTX_VERSIONED_IDENTIFIER(nvtxInitOnce)();
    return settle();
  }
  return look();
}

}  // namespace

bool init_listener() {
#if defined(Py_GIL_DISABLED)
  // In the child of a fork: a thread that looked for a tool, and had to wait within, is not here.
  static std::atomic<bool> done{false};
  return done.exchange(true) || pthread_atfork(nullptr, nullptr, [] { new (&g_mutex) SlowMutex; }) == 0;
#else
  return true;
#endif
}

int32_t ask_for_listener() {
  const std::lock_guard<SlowMutex> lock(g_mutex);
  const int32_t state = g_listener.load(std::memory_order_acquire);
  return state < 0 ? look() : state;
}

void mute() {
  const std::lock_guard<SlowMutex> lock(g_mutex);
  g_muted.store(true);
  g_listener.store(0, std::memory_order_release);
}

bool is_muted() {
  return g_muted.load(std::memory_order_relaxed);
}

int32_t look_again() {
  const std::lock_guard<SlowMutex> lock(g_mutex);
  return look_again_locked();
}

bool attached() {
  const int32_t state = g_listener.load(std::memory_order_acquire);
  if (state > 0) {
    return true;
  }
  const std::lock_guard<SlowMutex> lock(g_mutex);
  const std::string now = announcement();
  if (g_muted.load() || now.empty() || (state == 0 && now == g_announced)) {
    return g_listener.load(std::memory_order_acquire) > 0;
  }
  return look_again_locked() > 0;
}

}  // namespace warplens::binding
