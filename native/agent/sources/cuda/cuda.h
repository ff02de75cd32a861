// The shared state of the CUDA source.
// It records CUPTI's data, and the calls of `--cudabacktrace`.
#pragma once

#include <mutex>
#include <string_view>

#include "agent/hooks/cupti/cupti.h"
#include "devices.h"
#include "names.h"
#include "seen.h"
#include "threads.h"

namespace warplens::agent {

// What batches need and leave behind. It belongs to the process: names go on from recording to recording.
struct CudaState {
  std::mutex mutex;  // of all of it; callers hold Busy
  CudaSettings settings{};
  uint64_t begin_ns = 0;      // of the recording
  bool clock_is_off = false;  // said once per recording
  CudaNames names;
  CudaSeen seen;
  CudaDevices devices;
  CudaThreads threads;
};
CudaState &cuda_state();

//! [MT] Walks and writes a batch, or counts it as lost; see CuptiSource::records.
void record_cuda_batch(const CuptiBatch &batch);

//! The caller holds the writer.
void write_cuda_notice(ProcessLog &log, WideLog::Writer &writer, CudaNotice notice, int64_t value,
                       uint32_t text);

// --cudabacktrace; see CuptiSource.
void begin_cuda_calls(const Cupti &cupti, ProcessLog &log, const CudaSettings &settings);
bool wants_cuda_call(CuptiDomain domain, uint32_t cbid);
void note_cuda_call(CuptiDomain domain, uint32_t cbid, const CuptiCallbackData *call);

}  // namespace warplens::agent
