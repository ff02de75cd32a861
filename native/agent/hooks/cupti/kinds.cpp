// Switches kinds of records on and off.
// Skips kinds that this CUPTI lacks; reports a missing kind that every version should have.
#include "kinds.h"

#include <iterator>

#include "calls.h"

namespace warplens::agent {
namespace {

struct Kind {
  CuptiKind kind;
  const char *name;
  uint32_t wanted_by;  // any of these flags; 0 = always
  uint32_t not_with;   // but with none of these
  bool everywhere;     // all versions have it
};

constexpr uint32_t kUmFlags = kCudaUm | kCudaUmCpuFaults | kCudaUmGpuFaults;

constexpr Kind kObjects[] = {
    {kCuptiDevice, "DEVICE", 0, 0, true},
    {kCuptiContext, "CONTEXT", 0, 0, true},
    {kCuptiStream, "STREAM", 0, 0, true},
};
constexpr Kind kKinds[] = {
    {kCuptiConcurrentKernel, "CONCURRENT_KERNEL", 0, 0, true},
    {kCuptiMemcpy, "MEMCPY", 0, 0, true},
    {kCuptiMemcpyPeer, "MEMCPY2", 0, 0, true},
    {kCuptiMemset, "MEMSET", 0, 0, true},
    {kCuptiGraph, "GRAPH_TRACE", 0, kCudaGraphNodes, false},
    {kCuptiSynchronization, "SYNCHRONIZATION", 0, kCudaNoApi, true},
    {kCuptiCudaEvent, "CUDA_EVENT", kCudaEvents, 0, true},
    {kCuptiMemory, "MEMORY2", kCudaMemory, 0, true},
    {kCuptiMemoryPool, "MEMORY_POOL", kCudaMemory, 0, true},
    {kCuptiOverhead, "OVERHEAD", 0, 0, true},
    {kCuptiJit, "JIT", 0, 0, false},
    {kCuptiExternal, "EXTERNAL_CORRELATION", 0, kCudaNoApi, true},
};
constexpr Kind kUm{kCuptiUmCounter, "UNIFIED_MEMORY_COUNTER", kUmFlags, 0, false};
constexpr Kind kRuntime{kCuptiRuntime, "RUNTIME", 0, kCudaNoApi, true};
constexpr Kind kDriver{kCuptiDriver, "DRIVER", 0, kCudaNoApi, true};

bool is_wanted(const Kind &kind, uint32_t flags) {
  return (kind.wanted_by == 0 || (flags & kind.wanted_by) != 0) && (flags & kind.not_with) == 0;
}

CuptiResult enable(const Cupti &cupti, CuptiKind kind, bool dump) {
  const CuptiFunctions &call = *cupti.call;
  if (cupti.several) {
    return dump && call.activity_enable_and_dump_v2 != nullptr
               ? call.activity_enable_and_dump_v2(cupti.subscriber, kind, nullptr)
               : call.activity_enable_v2(cupti.subscriber, kind, nullptr);
  }
  return dump && call.activity_enable_and_dump != nullptr ? call.activity_enable_and_dump(kind)
                                                          : call.activity_enable(kind);
}

void enable(const Cupti &cupti, const Kind &kind, bool dump, CuptiComplaint complain) {
  CuptiResult result = enable(cupti, kind.kind, dump);
  if (result == kCuptiInvalidKind && !kind.everywhere) {
    complain(CudaNotice::too_old, cupti.version, kind.name);
  } else if (result != kCuptiSuccess) {
    complain(CudaNotice::failed, result, kind.name);
  }
}

void disable(const Cupti &cupti, CuptiKind kind) {
  if (cupti.several) {
    cupti.call->activity_disable_v2(cupti.subscriber, kind, nullptr);
  } else {
    cupti.call->activity_disable(kind);
  }
}

bool can_choose_calls(const Cupti &cupti) {
  const CuptiFunctions &call = *cupti.call;
  return cupti.several
             ? call.activity_enable_runtime_api_v2 != nullptr && call.activity_enable_driver_api_v2 != nullptr
             : call.activity_enable_runtime_api != nullptr && call.activity_enable_driver_api != nullptr;
}

CuptiResult choose_call(const Cupti &cupti, CuptiDomain domain, uint32_t cbid, bool on) {
  const CuptiFunctions &call = *cupti.call;
  auto enable = static_cast<uint8_t>(on);
  if (domain == kCuptiRuntimeApi) {
    return cupti.several ? call.activity_enable_runtime_api_v2(cupti.subscriber, cbid, enable)
                         : call.activity_enable_runtime_api(cbid, enable);
  }
  return cupti.several ? call.activity_enable_driver_api_v2(cupti.subscriber, cbid, enable)
                       : call.activity_enable_driver_api(cbid, enable);
}

void choose_calls(const Cupti &cupti, CuptiDomain domain, bool recorded, bool on) {
  for (uint32_t cbid = 1; cbid < call_count(domain); ++cbid) {
    if (is_recorded_call(domain, cbid) == recorded) {
      choose_call(cupti, domain, cbid, on);
    }
  }
}

// Of the runtime all but a few; of the driver a few: the others never cost anything. A CUPTI that cannot choose gives all of them,
// and the source leaves them out. True: the canary is recorded. A kind that is switched forgets what was chosen, so that comes last.
bool enable_calls(const Cupti &cupti, uint32_t flags, CuptiComplaint complain) {
  bool wanted = is_wanted(kRuntime, flags);
  bool choose = can_choose_calls(cupti);
  if (wanted) {
    enable(cupti, kRuntime, false, complain);
    if ((flags & kCudaAllApis) != 0 || !choose) {
      enable(cupti, kDriver, false, complain);
      return true;
    }
    choose_calls(cupti, kCuptiRuntimeApi, false, false);
    choose_calls(cupti, kCuptiDriverApi, true, true);
  }
  return choose && choose_call(cupti, kCuptiDriverApi, kCuptiDeviceGetCount, true) == kCuptiSuccess;
}

void disable_calls(const Cupti &cupti, uint32_t flags) {
  bool wanted = is_wanted(kRuntime, flags);
  if (can_choose_calls(cupti)) {
    choose_call(cupti, kCuptiDriverApi, kCuptiDeviceGetCount, false);
    if (wanted && (flags & kCudaAllApis) == 0) {
      choose_calls(cupti, kCuptiDriverApi, true, false);
    }
  }
  if (wanted) {
    disable(cupti, kCuptiDriver);
    disable(cupti, kCuptiRuntime);
  }
}

CuptiResult set_byte(const Cupti &cupti, uint32_t attribute) {
  uint8_t value = 1;
  size_t size = sizeof(value);
  if (cupti.several) {
    return cupti.call->activity_set_attribute_v2 == nullptr
               ? CuptiResult{kCuptiNotSupported}
               : cupti.call->activity_set_attribute_v2(cupti.subscriber, attribute, &size, &value);
  }
  return cupti.call->activity_set_attribute(attribute, &size, &value);
}

// Of several subscribers each says it for itself, with an attribute; a single one has functions.
void set_option(const Cupti &cupti, uint32_t attribute, CuptiResult (*function)(uint8_t), const char *name,
                CuptiComplaint complain) {
  if (!cupti.several && function == nullptr) {
    complain(CudaNotice::too_old, cupti.version, name);
    return;
  }
  CuptiResult result = cupti.several ? set_byte(cupti, attribute) : function(1);
  if (result != kCuptiSuccess) {
    complain(CudaNotice::failed, result, name);
  }
}

}  // namespace

void configure_cupti(const Cupti &cupti, const CudaSettings &settings, CuptiComplaint complain) {
  set_byte(cupti, kCuptiZeroedOutBuffer);  // else CUPTI empties buffers itself, on the program's threads
  const CuptiFunctions &call = *cupti.call;
  uint32_t ids = kCuptiThreadIdSystem;
  size_t size = sizeof(ids);
  if (cupti.several && call.activity_set_attribute_v2 != nullptr) {  // each subscriber has its own
    call.activity_set_attribute_v2(cupti.subscriber, kCuptiThreadIdType, &size, &ids);
  }
  if ((settings.flags & kCudaEvents) != 0 && cupti.version >= kCupti130) {
    set_option(cupti, kCuptiEventTimes, call.activity_enable_event_times, "times of events on the GPU",
               complain);
  }
  if ((settings.flags & kCudaMemory) != 0 && cupti.version >= kCuptiSinceAllocationSource) {
    set_option(cupti, kCuptiAllocationSource, call.activity_enable_allocation_source, "who allocates memory",
               complain);
  }
  if (cupti.several && (settings.flags & kCudaGraphNodes) == 0) {
    set_byte(
        cupti,
        kCuptiSeveralGraphTrace);  // fails where another subscriber has begun: graphs come node by node then
  }
}

void switch_objects_on(const Cupti &cupti, bool dump, CuptiComplaint complain) {
  for (const Kind &kind : kObjects) {
    enable(cupti, kind, dump, complain);
  }
}

void switch_objects_off(const Cupti &cupti) {
  for (const Kind &kind : kObjects) {
    disable(cupti, kind.kind);
  }
}

bool switch_kinds_on(const Cupti &cupti, const CudaSettings &settings, CuptiComplaint complain) {
  for (const Kind &kind : kKinds) {
    if (is_wanted(kind, settings.flags)) {
      enable(cupti, kind, false, complain);
    }
  }
  return enable_calls(cupti, settings.flags, complain);
}

void switch_kinds_off(const Cupti &cupti, const CudaSettings &settings) {
  disable_calls(cupti, settings.flags);
  if ((settings.flags & kUmFlags) != 0) {
    disable(cupti, kUm.kind);
  }
  for (auto kind = std::rbegin(kKinds); kind != std::rend(kKinds); ++kind) {
    if (is_wanted(*kind, settings.flags)) {
      disable(cupti, kind->kind);
    }
  }
}

bool switch_um_on(const Cupti &cupti, const CudaSettings &settings, CuptiComplaint complain) {
  if ((settings.flags & kUmFlags) == 0) {
    return true;
  }
  CuptiUmConfig wanted[4];
  uint32_t count = 0;
  auto add = [&](uint32_t flag, uint32_t kind) {
    if ((settings.flags & flag) != 0) {
      wanted[count++] = {2, kind, 0, 1};
    }
  };
  add(kCudaUm, kCuptiUmHostToDevice);
  add(kCudaUm, kCuptiUmDeviceToHost);
  add(kCudaUmCpuFaults, kCuptiUmCpuFaults);
  add(kCudaUmGpuFaults, kCuptiUmGpuFaults);
  CuptiResult result = cupti.call->activity_configure_um == nullptr
                           ? CuptiResult{kCuptiNotSupported}
                           : cupti.call->activity_configure_um(wanted, count);
  if (result == kCuptiNotInitialized) {
    return false;
  }
  if (result != kCuptiSuccess) {
    complain(CudaNotice::failed, result, "unified memory");
    return true;
  }
  enable(cupti, kUm, false, complain);
  return true;
}

}  // namespace warplens::agent
