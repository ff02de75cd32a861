// Looks up which API functions are recorded, once at the start.
// A record or a callback then needs one look-up in a table.
#include "calls.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "cupti_source.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kMost = 2048;  // functions of a domain; CUDA 13.4 has 868 and 566
constexpr uint8_t kRecorded = 1;
constexpr uint8_t kLaunch = 2;

// By domain: driver, runtime.
std::atomic<uint8_t> g_calls[2][kMost];
std::atomic<uint32_t> g_counts[2];
std::atomic<const char *> g_names[2][kMost];  // CUPTI's own texts

// Of the runtime, what just asks, or belongs to a launch; but not what takes long, or waits.
constexpr std::string_view kQuestions[] = {
    "cudaPeek",
    "cudaOccupancy",
    "cudaChooseDevice",
    "cudaCreateChannelDesc",
    "cudaDeviceCanAccessPeer",
    "cudaStreamIsCapturing",
    "cudaThreadExchangeStreamCaptureMode",
    "cudaDriverGetVersion",
    "cudaConfigureCall",
    "cudaSetupArgument",
    "__cudaPush",
    "__cudaPop",
    "__cudaRegister",
    "__cudaGetKernel",
    "__cudaGetProcAddress",
};
constexpr std::string_view kSlowQuestions[] = {
    "cudaMemGetInfo",
    "cudaGetDeviceProperties",
    "cudaGetDeviceCount",
    "cudaIpcGet",
};

// Of the driver, what starts something, waits for it, or takes long; whole families by how their names begin.
constexpr std::string_view kDeeds[] = {
    "cuInit",
    "cuLaunch",
    "cuGraphLaunch",
    "cuGraphInstantiate",
    "cuGraphExecUpdate",
    "cuGraphUpload",
    "cuMemcpy",
    "cuMemset",
    "cuMemAlloc",
    "cuMemFree",
    "cuMemCreate",
    "cuMemRelease",
    "cuMemMap",
    "cuMemUnmap",
    "cuMemHostAlloc",
    "cuMemHostRegister",
    "cuMemHostUnregister",
    "cuMemPrefetch",
    "cuMemAdvise",
    "cuMemDiscard",
    "cuMemBatch",
    "cuMemPoolCreate",
    "cuMemPoolDestroy",
    "cuMemPoolTrimTo",
    "cuMemGetInfo",
    "cuCtxCreate",
    "cuCtxDestroy",
    "cuCtxSynchronize",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease",
    "cuDevicePrimaryCtxReset",
    "cuGreenCtxCreate",
    "cuGreenCtxDestroy",
    "cuStreamCreate",
    "cuStreamDestroy",
    "cuStreamSynchronize",
    "cuStreamWait",
    "cuStreamWrite",
    "cuStreamBatchMemOp",
    "cuStreamQuery",
    "cuStreamBeginCapture",
    "cuStreamEndCapture",
    "cuStreamAttachMemAsync",
    "cuStreamAddCallback",
    "cuEventCreate",
    "cuEventDestroy",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventQuery",
    "cuModuleLoad",
    "cuModuleUnload",
    "cuLibraryLoad",
    "cuLibraryUnload",
    "cuLinkComplete",
    "cuFuncLoad",
    "cuIpcOpen",
    "cuIpcClose",
    "cuImportExternal",
    "cuSignalExternal",
    "cuWaitExternal",
    "cuProfiler",
};

constexpr std::string_view kLaunches[] = {
    "cuLaunchKernel",        "cuLaunchCooperative", "cuGraphLaunch",      "cudaLaunchKernel",
    "cudaLaunchCooperative", "cudaGraphLaunch",     "__cudaLaunchKernel",
};

template <typename List>
bool begins_with_any(std::string_view name, const List &list) {
  return std::any_of(std::begin(list), std::end(list),
                     [name](std::string_view start) { return name.starts_with(start); });
}

unsigned index_of(CuptiDomain domain) {
  return domain == kCuptiRuntimeApi ? 1 : 0;
}

uint8_t look(CuptiDomain domain, uint32_t cbid) {
  return cbid < kMost ? g_calls[index_of(domain)][cbid].load(std::memory_order_relaxed) : kRecorded;
}

}  // namespace

bool is_worth_recording(CuptiDomain domain, std::string_view name) {
  if (domain == kCuptiDriverApi) {
    return begins_with_any(name, kDeeds);
  }
  if (begins_with_any(name, kSlowQuestions)) {
    return true;
  }
  // cudaGetDevice, cudaDeviceGetAttribute, cudaGraphKernelNodeGetParams: the word, not the letters of another one.
  size_t get = name.find("Get");
  bool asks = get != name.npos && get + 3 < name.size() && name[get + 3] >= 'A' && name[get + 3] <= 'Z';
  return !asks && !begins_with_any(name, kQuestions);
}

void learn_calls(const Cupti &cupti) {
  for (CuptiDomain domain : {CuptiDomain{kCuptiDriverApi}, CuptiDomain{kCuptiRuntimeApi}}) {
    unsigned unknown = 0;
    uint32_t count = 1;
    for (uint32_t cbid = 1; cbid < kMost && unknown < 64; ++cbid) {
      const char *name = cupti_callback_name(cupti, domain, cbid);
      if (name == nullptr || *name == '\0') {
        ++unknown;  // some numbers are left out
        continue;
      }
      unknown = 0;
      count = cbid + 1;
      uint8_t is = is_worth_recording(domain, name) ? kRecorded : 0;
      is |= begins_with_any(name, kLaunches) ? kLaunch : uint8_t{0};
      g_calls[index_of(domain)][cbid].store(is, std::memory_order_relaxed);
      g_names[index_of(domain)][cbid].store(name, std::memory_order_release);
    }
    g_counts[index_of(domain)].store(count, std::memory_order_relaxed);
  }
}

bool is_recorded_call(CuptiDomain domain, uint32_t cbid) {
  return (look(domain, cbid) & kRecorded) != 0;
}

bool is_launch(CuptiDomain domain, uint32_t cbid) {
  return (look(domain, cbid) & kLaunch) != 0;
}

const char *known_call_name(CuptiDomain domain, uint32_t cbid) {
  return cbid < kMost ? g_names[index_of(domain)][cbid].load(std::memory_order_acquire) : nullptr;
}

uint32_t call_count(CuptiDomain domain) {
  return g_counts[index_of(domain)].load(std::memory_order_relaxed);
}

}  // namespace warplens::agent
