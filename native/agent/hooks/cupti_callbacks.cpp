// What CUPTI tells of while it happens, on the program's threads: few things, for each costs something like 100 ns.
#include <cerrno>

#include "agent/session.h"
#include "cupti_calls.h"
#include "cupti_state.h"

namespace warplens::agent {
namespace {

constexpr uint64_t kFewLaunches = 8;
constexpr uint32_t kMostCalls = sizeof(g_cupti.forwarded[0]) / sizeof(g_cupti.forwarded[0][0]);

// A launch by the runtime is one by the driver, too: only the outer one counts.
__thread uint32_t t_launch_depth = 0;

void enable(CuptiDomain domain, uint32_t cbid, bool on) {
  const Cupti &cupti = g_cupti.cupti;
  cupti.call->enable_callback(on ? 1 : 0, cupti.subscriber, domain, cbid);
}

bool is_forwarded(CuptiDomain domain, uint32_t cbid) {
  return cbid < kMostCalls && g_cupti.forwarded[domain - 1][cbid].load(std::memory_order_relaxed) != 0;
}

bool is_profiler_call(CuptiDomain domain, uint32_t cbid, uint32_t driver, uint32_t runtime) {
  return cbid == (domain == kCuptiDriverApi ? driver : runtime);
}

bool ends_contexts(CuptiDomain domain, uint32_t cbid) {
  return domain == kCuptiDriverApi ? cbid == kCuptiPrimaryCtxReset || cbid == kCuptiPrimaryCtxResetV2 ||
                                         cbid == kCuptiCtxDestroy || cbid == kCuptiCtxDestroyV2
                                   : cbid == kCuptiRuntimeDeviceReset || cbid == kCuptiRuntimeThreadExit;
}

void count_launch(const CuptiCallbackData &call) {
  if (call.site == kCuptiExit) {
    t_launch_depth -= t_launch_depth != 0 ? 1 : 0;
  } else if (t_launch_depth++ == 0) {
    g_cupti.launches.fetch_add(1, std::memory_order_relaxed);
  }
}

void on_call(CuptiDomain domain, uint32_t cbid, const CuptiCallbackData &call) {
  // The first launch may follow the start at once, and none before the stop may be lost.
  if (is_profiler_call(domain, cbid, kCuptiProfilerStart, kCuptiRuntimeProfilerStart)) {
    if (call.site == kCuptiExit) {
      profiler_start();
    }
  } else if (is_profiler_call(domain, cbid, kCuptiProfilerStop, kCuptiRuntimeProfilerStop)) {
    if (call.site == kCuptiEnter) {
      profiler_stop();
    }
  } else if (ends_contexts(domain, cbid)) {
    if (call.site == kCuptiEnter) {
      fetch_cupti_records();  // what is known of their work goes with them
    }
  } else if (is_launch(domain, cbid)) {
    count_launch(call);
  } else if (is_wait(domain, cbid) && call.site == kCuptiExit &&
             g_cupti.launches.load(std::memory_order_relaxed) >= kFewLaunches) {
    g_cupti.waits.fetch_add(1, std::memory_order_relaxed);
  }
  if (is_forwarded(domain, cbid)) {
    kCudaSource.api_call(domain, cbid, &call);
  }
}

void on_made(uint32_t cbid, const CuptiResourceData &data) {
  CuptiState &state = g_cupti;
  const CuptiFunctions &call = *state.cupti.call;
  CuptiMade made{reinterpret_cast<uintptr_t>(data.context), 0, 0, 0};
  if (call.get_context_id == nullptr || call.get_context_id(data.context, &made.context) != kCuptiSuccess) {
    return;
  }
  if (cbid == kCuptiStreamCreated) {
    made.stream_handle = reinterpret_cast<uintptr_t>(data.stream);
    if (call.get_stream_id_ex == nullptr ||
        call.get_stream_id_ex(data.context, data.stream, 0, &made.stream) != kCuptiSuccess) {
      return;
    }
  }
  if (ProcessLog *log = state.log.load(std::memory_order_acquire)) {
    kCudaSource.made(*log, made);
  }
}

void on_resource(uint32_t cbid, const CuptiResourceData &data) {
  if (cbid == kCuptiContextCreated && !g_cupti.has_context.exchange(true)) {
    wake_cupti_thread();  // it may have waited for that
  }
  on_made(cbid, data);
}

// CUPTI has shut itself down, or is about to: nothing is asked of it any more.
void on_fatal_error(const CuptiStateData &data) {
  CuptiStage on = CuptiStage::on;
  if (g_cupti.stage.compare_exchange_strong(on, CuptiStage::dead)) {
    cupti_notice(CudaNotice::finalized, data.result, data.message);
  }
}

}  // namespace

void on_cupti_callback(void *, CuptiDomain domain, uint32_t cbid, const void *data) {
  if (!is_cupti_usable() || data == nullptr) {
    return;
  }
  int saved = errno;
  if (domain == kCuptiDriverApi || domain == kCuptiRuntimeApi) {
    on_call(domain, cbid, *static_cast<const CuptiCallbackData *>(data));
  } else if (domain == kCuptiResource) {
    on_resource(cbid, *static_cast<const CuptiResourceData *>(data));
  } else if (domain == kCuptiState && cbid == kCuptiFatalError) {
    on_fatal_error(*static_cast<const CuptiStateData *>(data));
  }
  errno = saved;
}

void enable_cupti_callbacks() {
  CuptiState &state = g_cupti;
  enable(kCuptiState, kCuptiFatalError, true);
  for (uint32_t cbid : {kCuptiContextCreated, kCuptiStreamCreated}) {
    enable(kCuptiResource, cbid, true);
  }
  for (uint32_t cbid :
       {kCuptiPrimaryCtxReset, kCuptiPrimaryCtxResetV2, kCuptiCtxDestroy, kCuptiCtxDestroyV2}) {
    enable(kCuptiDriverApi, cbid, true);
  }
  for (uint32_t cbid : {kCuptiRuntimeDeviceReset, kCuptiRuntimeThreadExit}) {
    enable(kCuptiRuntimeApi, cbid, true);
  }
  if (state.control != nullptr && state.control->trigger == Trigger::profiler_api) {
    enable(kCuptiDriverApi, kCuptiProfilerStart, true);
    enable(kCuptiDriverApi, kCuptiProfilerStop, true);
    enable(kCuptiRuntimeApi, kCuptiRuntimeProfilerStart, true);
    enable(kCuptiRuntimeApi, kCuptiRuntimeProfilerStop, true);
  }
  for (CuptiDomain domain : {CuptiDomain{kCuptiDriverApi}, CuptiDomain{kCuptiRuntimeApi}}) {
    for (uint32_t cbid = 1; cbid < call_count(domain) && cbid < kMostCalls; ++cbid) {
      bool wanted = kCudaSource.wants_api_call(domain, cbid);
      state.forwarded[domain - 1][cbid].store(wanted ? 1 : 0, std::memory_order_relaxed);
      if (wanted) {
        enable(domain, cbid, true);
      }
    }
  }
}

void watch_cupti_launches(bool on) {
  g_cupti.watching = on;
  g_cupti.launches.store(0, std::memory_order_relaxed);
  g_cupti.waits.store(0, std::memory_order_relaxed);
  for (CuptiDomain domain : {CuptiDomain{kCuptiDriverApi}, CuptiDomain{kCuptiRuntimeApi}}) {
    for (uint32_t cbid = 1; cbid < call_count(domain); ++cbid) {
      if ((is_launch(domain, cbid) || is_wait(domain, cbid)) && !is_forwarded(domain, cbid)) {
        enable(domain, cbid, on);
      }
    }
  }
}

}  // namespace warplens::agent
