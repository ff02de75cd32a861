// Records slow CUDA calls with their stacks (`--cudabacktrace`).
// The stack is the same when a call returns, so only long calls are unwound.
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "agent/hooks/cupti/calls.h"
#include "agent/hooks/unwind.h"
#include "cuda.h"
#include "windows.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kFunctions = 2048;
constexpr unsigned kCategories = 4;

std::atomic<ProcessLog *> g_log{nullptr};
uint8_t g_category[2][kFunctions];  // kCuda…Calls: one of them, or 0
uint64_t g_least_ns[kCategories];

// The runtime's functions call the driver's: that is one call.
struct Outer {
  uint64_t *begin;  // its correlation_data, null: none
  bool runtime;
};
__thread Outer t_outer;

bool has(std::string_view name, std::initializer_list<std::string_view> parts) {
  for (std::string_view part : parts) {
    if (name.find(part) != name.npos) {
      return true;
    }
  }
  return false;
}

uint8_t category_of(CuptiDomain domain, uint32_t cbid, std::string_view name) {
  if (is_launch(domain, cbid)) {
    return kCudaKernelCalls;
  }
  if (!is_recorded_call(domain, cbid)) {
    return 0;
  }
  if (has(name, {"Synchronize", "StreamWaitEvent"})) {
    return kCudaSyncCalls;
  }
  if (has(name, {"Memcpy", "Memset", "Malloc", "Free", "MemAlloc", "MemCreate", "MemRelease", "MemMap",
                 "MemUnmap", "MemPrefetch", "MemAdvise", "HostAlloc", "HostRegister", "HostUnregister",
                 "MemPool", "MemDiscard"})) {
    return kCudaMemoryCalls;
  }
  return kCudaOtherCalls;
}

uint8_t &category_at(CuptiDomain domain, uint32_t cbid) {
  return g_category[domain == kCuptiRuntimeApi ? 1 : 0][cbid];
}

unsigned number_of(uint8_t category) {
  return static_cast<unsigned>(__builtin_ctz(category));
}

constexpr uint32_t kStackDepth = 64;

void write(ProcessLog &log, const CuptiCallbackData *call, uint32_t name, uint8_t category, uint64_t start,
           uint64_t end) {
  Unwinder unwind = g_unwinder.load(std::memory_order_acquire);
  CudaBacktraceRecord record{};
  record.head = {RecordType::cuda_backtrace, 0, 0, name};
  record.start = start;
  record.end = end;
  record.frames = unwind != nullptr ? unwind(log, kStackDepth) : 0;
  record.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  record.correlation = call->correlation;
  record.category = category;
  WideLog::Writer(log.wide()).append(record, start);
}

}  // namespace

void begin_cuda_calls(const Cupti &cupti, ProcessLog &log, const CudaSettings &settings) {
  for (unsigned i = 0; i < kCategories; ++i) {
    g_least_ns[i] = settings.backtrace_ns[i];
  }
  for (CuptiDomain domain : {kCuptiDriverApi, kCuptiRuntimeApi}) {
    for (uint32_t cbid = 1; cbid < kFunctions; ++cbid) {
      uint8_t category = 0;
      if (settings.backtrace != 0 && cbid < call_count(domain)) {
        const char *name = cupti_callback_name(cupti, domain, cbid);
        category = name == nullptr ? 0 : category_of(domain, cbid, name);
      }
      category_at(domain, cbid) = static_cast<uint8_t>(category & settings.backtrace);
    }
  }
  g_log.store(settings.backtrace != 0 ? &log : nullptr, std::memory_order_release);
}

bool wants_cuda_call(CuptiDomain domain, uint32_t cbid) {
  return cbid < kFunctions && category_at(domain, cbid) != 0;
}

void note_cuda_call(CuptiDomain domain, uint32_t cbid, const CuptiCallbackData *call) {
  ProcessLog *log = g_log.load(std::memory_order_acquire);
  if (log == nullptr || !wants_cuda_call(domain, cbid) || call->correlation_data == nullptr) {
    return;
  }
  bool runtime = domain == kCuptiRuntimeApi;
  if (call->site == kCuptiEnter) {
    // One whose return was not heard of, because calls were not listened to for a while, must not be an outer one for ever: of the
    // same kind there is none within another.
    bool within = t_outer.begin != nullptr && t_outer.runtime && !runtime;
    *call->correlation_data = within ? 0 : now_ns(log->clock());
    if (!within) {
      t_outer = {call->correlation_data, runtime};
    }
    return;
  }
  if (t_outer.begin != call->correlation_data) {
    return;
  }
  t_outer.begin = nullptr;
  uint64_t start = *call->correlation_data;
  uint64_t end = now_ns(log->clock());
  uint8_t category = category_at(domain, cbid);
  if (start == 0 || start > end || end - start < g_least_ns[number_of(category)] ||
      !CudaWindows(log->control()).keeps(start, end)) {
    return;
  }
  Busy busy;
  if (!busy) {
    return log->file().drop(RecordType::cuda_backtrace);
  }
  uint32_t name = call->function == nullptr ? 0 : log->intern(call->function);
  write(*log, call, name, category, start, end);
}

}  // namespace warplens::agent
