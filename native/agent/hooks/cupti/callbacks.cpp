// Handles CUPTI's callbacks on the program's threads.
// Only few callbacks are on, since each costs about 100 ns.
#include <algorithm>
#include <cerrno>
#include <iterator>

#include "agent/session.h"
#include "agent/source.h"
#include "calls.h"
#include "state.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kMostCalls = sizeof(g_cupti.forwarded[0]) / sizeof(g_cupti.forwarded[0][0]);

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

constexpr uint32_t kDriverEnds[] = {
    kCuptiCtxDestroy,        kCuptiCtxDestroyV2,        kCuptiPrimaryCtxReset, kCuptiPrimaryCtxResetV2,
    kCuptiPrimaryCtxRelease, kCuptiPrimaryCtxReleaseV2, kCuptiGreenCtxDestroy,
};
constexpr uint32_t kRuntimeEnds[] = {kCuptiRuntimeDeviceReset, kCuptiRuntimeThreadExit};

bool ends_contexts(CuptiDomain domain, uint32_t cbid) {
  auto is_it = [cbid](uint32_t end) { return end == cbid; };
  return domain == kCuptiDriverApi ? std::any_of(std::begin(kDriverEnds), std::end(kDriverEnds), is_it)
                                   : std::any_of(std::begin(kRuntimeEnds), std::end(kRuntimeEnds), is_it);
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

// Nodes of a captured graph keep what the thread was doing; launches know only who launched the graph.
void on_graph_node(uint32_t cbid, const CuptiGraphData *graph) {
  const CuptiFunctions &call = *g_cupti.cupti.call;
  uint64_t node = 0, original = 0;
  if (graph == nullptr || call.get_graph_node_id == nullptr ||
      call.get_graph_node_id(graph->node, &node) != kCuptiSuccess ||
      (cbid == kCuptiGraphNodeCloned &&
       call.get_graph_node_id(graph->original_node, &original) != kCuptiSuccess)) {
    return;
  }
  if (ProcessLog *log = g_cupti.log.load(std::memory_order_acquire)) {
    bool current = t_log != nullptr && t_log->generation() == log->generation();
    kCudaSource.graph_node(*log, current ? t_log : nullptr, node, original);
  }
}

void on_resource(uint32_t cbid, const CuptiResourceData &data) {
  if (cbid == kCuptiGraphNodeCreated || cbid == kCuptiGraphNodeCloned) {
    return on_graph_node(cbid, static_cast<const CuptiGraphData *>(data.descriptor));
  }
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
  for (uint32_t cbid :
       {kCuptiContextCreated, kCuptiStreamCreated, kCuptiGraphNodeCreated, kCuptiGraphNodeCloned}) {
    enable(kCuptiResource, cbid, true);
  }
  for (uint32_t cbid : kDriverEnds) {
    enable(kCuptiDriverApi, cbid, true);
  }
  for (uint32_t cbid : kRuntimeEnds) {
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

}  // namespace warplens::agent
