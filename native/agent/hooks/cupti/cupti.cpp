// Begins and ends a recording of CUDA in this process.
#include "cupti.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "agent/session.h"
#include "agent/session_hook.h"
#include "agent/source.h"
#include "calls.h"
#include "kinds.h"
#include "spool/system/memory.h"
#include "state.h"
#include "warplens/leave.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace warplens::agent {

constinit CuptiState g_cupti;

namespace {

constexpr unsigned kPatienceMs = 5000;
constexpr unsigned kLongestMs = 20'000;  // for the last records of a process, as long as some come
constexpr unsigned kLeavesAfterMs = 1000;
std::atomic<uint32_t> g_static_alive{0};

const char *result_name(CuptiResult result) {
  const char *text = nullptr;
  const CuptiLibrary *library = g_cupti.library;
  bool told = library != nullptr && library->call.get_result_string(result, &text) == kCuptiSuccess;
  return told && text != nullptr ? text : "";
}

// A page that a fork child finds empty: CUPTI is not its own.
void live() {
  CuptiState &state = g_cupti;
  if (state.alive == nullptr) {
    void *page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool wiped = page != MAP_FAILED && madvise(page, kPage, MADV_WIPEONFORK) == 0;
    state.alive = wiped ? new (page) std::atomic<uint32_t>(0) : &g_static_alive;
  }
  state.alive->store(1, std::memory_order_relaxed);
}

bool can_be_one_of_several(const Cupti &cupti) {
  const CuptiFunctions &call = *cupti.call;
  return cupti.version >= kCupti133 && call.subscribe_v2 != nullptr && call.activity_enable_v2 != nullptr &&
         call.activity_disable_v2 != nullptr && call.activity_register_callbacks_v2 != nullptr &&
         call.activity_get_next_record_v2 != nullptr;
}

// Since 13.0 this call names the tool that has subscribed already. A version accepts exactly the size of its structure: 13.2 added a field.
CuptiResult subscribe_v2(Cupti &cupti, bool several, char *other, size_t other_size) {
  CuptiSubscriberParams wanted = {};
  wanted.size = cupti.version >= kCupti132 ? sizeof(wanted) : offsetof(CuptiSubscriberParams, allow_several);
  wanted.name = "warplens";
  wanted.other_name = other;
  wanted.other_name_size = other_size;
  wanted.allow_several = several ? 1 : 0;
  return cupti.call->subscribe_v2(&cupti.subscriber, on_cupti_callback, nullptr, &wanted);
}

// Subscribes, and gives CUPTI our clock unless contexts may exist (`late`). `other`: the tool that has CUPTI, where CUPTI says so.
CuptiResult subscribe(Cupti &cupti, bool late, char *other, size_t size) {
  if (can_be_one_of_several(cupti)) {
    CuptiResult result = subscribe_v2(cupti, true, other, size);
    cupti.several = result == kCuptiSuccess;
    if (cupti.several) {
      g_cupti.clock_is_ours = false;  // each subscriber has its own
    }
    if (result == kCuptiMultipleSubscribers && other[0] != '\0') {
      return result;
    }
  }
  // The clock comes first, but not where another tool may have CUPTI: it would be its clock, too.
  bool careful = secure_getenv("WARPLENS_CUDA_CHAIN") != nullptr;
  if (!cupti.several) {
    if (!late && !careful) {
      give_cupti_our_clock();
    }
    CuptiResult result = cupti.call->subscribe(&cupti.subscriber, on_cupti_callback, nullptr);
    if (result == kCuptiMultipleSubscribers && cupti.call->subscribe_v2 != nullptr) {
      other[0] = '\0';
      if (subscribe_v2(cupti, false, other, size) == kCuptiSuccess) {
        result = kCuptiSuccess;  // the other tool has gone meanwhile
      }
    }
    if (result != kCuptiSuccess) {
      return result;
    }
  }
  if (!late) {
    give_cupti_our_clock();  // where it has it already, nothing happens
  }
  return kCuptiSuccess;
}

// Another copy of CUPTI may succeed, unless the error is about the machine or about another tool.
bool may_another_copy_work(CuptiResult result) {
  switch (result) {
    case kCuptiMultipleSubscribers:
    case kCuptiInsufficientPrivileges:
    case kCuptiVirtualizedDevice:
    case kCuptiVirtualizedDevicePrivileges:
    case kCuptiConfidentialComputing:
    case kCuptiMig:
    case kCuptiWsl:
      return false;
    default:
      return true;
  }
}

// Loads a library and subscribes; a library that cannot be subscribed to is left for the next one. The one that works is kept for good.
bool load_and_subscribe(bool late) {
  CuptiState &state = g_cupti;
  Cupti &cupti = state.cupti;
  std::vector<std::string> refused;
  std::string failures;  // the same, each with its error
  for (CuptiResult result = kCuptiSuccess;;) {
    if (state.library == nullptr) {
      CuptiLibrary found;
      if (!load_cupti(found, refused)) {
        if (refused.empty()) {
          cupti_notice(CudaNotice::no_cupti, found.driver, found.looked.c_str());
        } else {
          cupti_notice(CudaNotice::failed, result, ("cuptiSubscribe of " + failures).c_str());
        }
        return false;
      }
      state.library = new CuptiLibrary(std::move(found));
    }
    const CuptiLibrary &library = *state.library;
    cupti = {&library.call, library.version, library.driver, nullptr, false};
    cupti.call->set_thread_id_type(kCuptiThreadIdSystem);
    char other[64] = {};
    result = subscribe(cupti, late, other, sizeof(other));
    if (result == kCuptiSuccess) {
      cupti_notice(CudaNotice::driver, cupti.driver, "");
      std::string taken =
          library.path + (failures.empty() ? "" : ", since cuptiSubscribe failed in " + failures);
      cupti_notice(CudaNotice::recording, cupti.version, taken.c_str());
      return true;
    }
    if (!may_another_copy_work(result)) {
      other[sizeof(other) - 1] = '\0';
      bool busy = result == kCuptiMultipleSubscribers;
      std::string call = "cuptiSubscribe of " + library.path;
      cupti_notice(busy ? CudaNotice::busy : CudaNotice::failed, result, busy ? other : call.c_str());
      return false;
    }
    failures += (failures.empty() ? "" : ", ") + library.path + " (" + result_name(result) + ")";
    refused.push_back(library.path);
    state.clock_is_ours = false;
    state.library = nullptr;  // not freed: `cupti` still points into it
  }
}

void finish(unsigned patience_ms) {
  CuptiState &state = g_cupti;
  if (!is_cupti_usable()) {
    return;
  }
  uint64_t begin = monotonic_ms();
  if (!ask_cupti_thread(CuptiRequest::finish, patience_ms)) {
    CuptiStage on = CuptiStage::on;
    state.stage.compare_exchange_strong(on, CuptiStage::dead);
    cupti_notice(CudaNotice::flush_hung, static_cast<int64_t>(monotonic_ms() - begin), "");
  }
}

void finish_at_exit() {
  finish(kLongestMs);
}

// Of a process that calls _exit, perhaps in a signal handler that has interrupted CUPTI: it cannot be waited for as long.
void finish_and_leave() {
  finish(kLeavesAfterMs);
}

// The stub calls us before _exit and quick_exit. A program that records itself runs without the stub.
void register_leave() {
  auto *leave = static_cast<WarplensLeave *>(dlsym(RTLD_DEFAULT, WARPLENS_LEAVE));
  if (leave != nullptr) {
    leave->call = finish_and_leave;
    __atomic_store_n(&leave->pid, static_cast<int32_t>(getpid()), __ATOMIC_RELEASE);
  }
}

// The caller holds `life`. `late`: contexts may exist.
void begin(ProcessLog &log, bool late) {
  CuptiState &state = g_cupti;
  CuptiStage stage = state.stage.load();
  if (stage == CuptiStage::on || stage == CuptiStage::dead) {
    return;
  }
  state.control = log.control();
  state.settings = state.control->cuda;
  state.kinds_on = false;
  state.um_is_on = false;
  state.canary_is_on = false;
  state.has_context.store(late);
  state.log.store(&log, std::memory_order_release);
  if (!load_and_subscribe(late)) {
    state.log.store(nullptr, std::memory_order_release);
    return;
  }
  live();
  Cupti &cupti = state.cupti;
  learn_calls(cupti);
  kCudaSource.begin(cupti, log, state.settings);
  state.stage.store(CuptiStage::on, std::memory_order_release);
  check_cupti_clock(late);
  configure_cupti(cupti, state.settings, cupti_notice);
  register_cupti_buffers();
  enable_cupti_callbacks();
  begin_following_windows();
  if (state.switching.take(kPatienceMs)) {
    switch_objects_on(cupti, late, cupti_notice);
    if (are_kinds_wanted()) {
      state.canary_is_on = switch_kinds_on(cupti, state.settings, cupti_notice);
      state.kinds_on = true;
    }
    state.switching.give();
  }
  if (!start_cupti_thread()) {
    cupti_notice(CudaNotice::failed, EAGAIN, "pthread_create");
  }
  static const int registered = std::atexit(finish_at_exit);
  static_cast<void>(registered);
  register_leave();
}

bool wants_cuda(const ControlPage *control) {
  return control != nullptr && (control->cuda.flags & kCudaTrace) != 0;
}

void begin_guarded(ProcessLog &log, bool late) {
  CuptiState &state = g_cupti;
  int saved = errno;
  if (state.life.take(kPatienceMs)) {
    try {
      if (log.generation() > state.ended_generation) {
        begin(log, late);
      }
    } catch (...) {
      // Out of memory.
    }
    state.life.give();
  }
  errno = saved;
}

}  // namespace

void cupti_notice(CudaNotice notice, int64_t value, const char *text) {
  ProcessLog *log = g_cupti.log.load(std::memory_order_acquire);
  if (log == nullptr) {
    return;
  }
  std::string_view words = text != nullptr ? text : "";
  if (notice != CudaNotice::failed) {
    kCudaSource.notice(*log, notice, value, words);
    return;
  }
  char room[400];
  const char *name = result_name(static_cast<CuptiResult>(value));
  int size = std::snprintf(room, sizeof(room), "%s%s%s", text != nullptr ? text : "",
                           *name != '\0' ? ": " : "", name);
  kCudaSource.notice(*log, notice, value,
                     {room, std::min(sizeof(room) - 1, static_cast<size_t>(std::max(size, 0)))});
}

const char *cupti_callback_name(const Cupti &cupti, CuptiDomain domain, uint32_t cbid) {
  // Records are decoded under locks of ours, where CUPTI is not called.
  if (const char *known = known_call_name(domain, cbid)) {
    return known;
  }
  const char *name = nullptr;
  return cupti.call->get_callback_name(domain, cbid, &name) == kCuptiSuccess ? name : nullptr;
}

void start_cupti() {
  if (!prepare() || !wants_cuda(control_page()) || !is_driver_loaded()) {
    return;
  }
  if (ProcessLog *log = open_log()) {
    begin_guarded(*log, g_cupti.stage.load() != CuptiStage::never);
  }
}

namespace {

void attach_cupti(ProcessLog &log) {
  // Where CUDA has not started, it will call us when it does: CUDA_INJECTION64_PATH says so.
  if (wants_cuda(log.control()) && is_driver_loaded() && is_driver_started()) {
    begin_guarded(log, true);
  }
}

void detach_cupti(uint32_t generation) {
  CuptiState &state = g_cupti;
  if (!state.life.take(kPatienceMs)) {
    return;
  }
  int saved = errno;
  state.ended_generation = std::max(state.ended_generation, generation);
  ProcessLog *log = state.log.load();
  if (log != nullptr && log->generation() == generation) {
    uint64_t begin = monotonic_ms();
    if (is_cupti_usable() && !ask_cupti_thread(CuptiRequest::detach, kLongestMs)) {
      CuptiStage on = CuptiStage::on;
      state.stage.compare_exchange_strong(on, CuptiStage::dead);
      cupti_notice(CudaNotice::flush_hung, static_cast<int64_t>(monotonic_ms() - begin), "");
    }
    state.log.store(nullptr, std::memory_order_release);
  }
  errno = saved;
  state.life.give();
}

void abandon_cupti() {
  CuptiState &state = g_cupti;
  if (state.alive != nullptr) {
    state.alive->store(0);
    state.stage.store(CuptiStage::dead);
  }
  state.log.store(nullptr);
  state.follows.store(false);
  state.life.renew();
  state.switching.renew();
  state.ended_generation = 0;
}

}  // namespace

constinit const SessionHook kCuptiHook{.attach = attach_cupti,
                                       .detach = detach_cupti,
                                       .windows_changed = follow_windows,
                                       .abandon = abandon_cupti};

}  // namespace warplens::agent
