// Buffers as a CUPTI of some version fills them: records of its sizes, with rubbish where we declare nothing.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "agent/hooks/cupti/calls.h"
#include "agent/hooks/cupti/cupti.h"
#include "drivers/cupti.h"

namespace warplens::agent {

// The functions that the tests call by number.
inline const char *const kDriverCalls[] = {nullptr, "cuLaunchKernel", "cuCtxGetCurrent",
                                           "cuMemcpyHtoDAsync_v2", "cuStreamSynchronize"};
inline const char *const kRuntimeCalls[] = {nullptr,
                                            "cudaLaunchKernel_v7000",
                                            "cudaGetLastError_v3020",
                                            "cudaMemcpyAsync_v3020",
                                            "cudaDeviceSynchronize_v3020",
                                            "cudaMalloc_v3020",
                                            "cudaEventCreate_v3020"};
inline int g_names_asked = 0;

// The real one is the dispatcher's, which these tests leave out.
inline const char *name_of_call(CuptiDomain domain, uint32_t cbid) {
  ++g_names_asked;
  if (domain == kCuptiDriverApi) {
    return cbid < std::size(kDriverCalls) ? kDriverCalls[cbid] : nullptr;
  }
  return cbid < std::size(kRuntimeCalls) ? kRuntimeCalls[cbid] : nullptr;
}

// Sizes of records, by kind and version.
inline size_t size_of(CuptiKind kind, uint32_t version) {
  const auto since = [version](uint32_t first, size_t then, size_t before) {
    return version >= first ? then : before;
  };
  switch (kind) {
    case kCuptiConcurrentKernel:
      return since(kCupti134, 248,
                   since(kCupti133, 232, since(kCupti132, 224, since(kCupti130, 216, since(19, 208, 200)))));
    case kCuptiMemcpy:
      return since(kCupti134, 112, since(kCupti128, 96, 88));
    case kCuptiMemcpyPeer:
      return 96;
    case kCuptiMemset:
      return since(kCupti134, 104, 88);
    case kCuptiDriver:
    case kCuptiRuntime:
      return 40;
    case kCuptiSynchronization:
      return since(kCupti128, 56, 40);
    case kCuptiCudaEvent:
      return since(kCupti128, 56, 24);
    case kCuptiMemory:
      return since(kCupti126, 128, 120);
    case kCuptiMemoryPool:
      return since(kCupti130, 80, 72);
    case kCuptiExternal:
      return 24;
    case kCuptiOverhead:
      return since(kCupti124, 56, 40);
    case kCuptiGraph:
      return since(kCupti124, 56, 48);
    case kCuptiUmCounter:
      return since(kCupti128, 104, 64);
    case kCuptiJit:
      return since(kCupti124, 72, 64);
    case kCuptiDevice:
      return since(kCupti132, 192, since(kCupti122, 184, 176));
    case kCuptiContext:
      return since(kCupti132, 40, since(kCupti126, 32, since(kCupti124, 24, 16)));
    case kCuptiStream:
      return 24;
    default:
      return 16;
  }
}

inline uint32_t g_version = kCupti130u1;

inline CuptiResult walk(uint8_t *buffer, size_t size, CuptiActivity **record) {
  uint8_t *next = *record == nullptr
                      ? buffer
                      : reinterpret_cast<uint8_t *>(*record) + size_of((*record)->kind, g_version);
  if (next >= buffer + size) {
    return kCuptiMaxLimitReached;
  }
  *record = reinterpret_cast<CuptiActivity *>(next);
  return kCuptiSuccess;
}

class Batch {
 public:
  template <typename Record>
  Batch &add(const Record &record) {
    size_t size = size_of(record.kind, g_version);
    size_t at = bytes_.size();
    bytes_.resize(at + size, 0xee);
    std::memcpy(&bytes_[at], &record, std::min(size, sizeof(Record)));
    return *this;
  }

  const std::vector<uint8_t> &bytes() const { return bytes_; }

  //! Hands it over, to be recorded in `log`.
  void send(ProcessLog &log, int64_t offset = 0, bool lost = false) {
    CuptiFunctions functions{};
    functions.activity_get_next_record = walk;
    Cupti cupti{&functions, g_version, 13000, nullptr, false};
    std::vector<uint64_t> aligned((bytes_.size() + 7) / 8);
    std::memcpy(aligned.data(), bytes_.data(), bytes_.size());
    kCudaSource.records(
        {cupti, log, lost, reinterpret_cast<uint8_t *>(aligned.data()), bytes_.size(), offset});
  }

 private:
  std::vector<uint8_t> bytes_;
};

//! A recording begins.
inline void begin(ProcessLog &log, const CudaSettings &settings = {}) {
  CuptiFunctions functions{};
  Cupti cupti{&functions, g_version, 13000, nullptr, false};
  learn_calls(cupti);
  kCudaSource.begin(cupti, log, settings);
}

}  // namespace warplens::agent
