// The interface of the source that gets CUPTI's data: batches of records, contexts, streams, calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "drivers/cupti.h"
#include "spool/process_log.h"
#include "warplens/cuda_records.h"

namespace warplens::agent {

// What is known once CUPTI works; it stays as it is.
struct Cupti {
  const CuptiFunctions *call;  // those that this CUPTI lacks are null
  uint32_t version;            // what cuptiGetVersion says: 18 (CUDA 11.8) to 28, then 130000, …
  int driver;                  // what cuDriverGetVersion says: 12040 is CUDA 12.4
  CuptiSubscriber subscriber;
  bool several;  // other tools may subscribe too: the functions that end in _v2 are the ones to call
};

// A buffer that CUPTI has filled.
struct CuptiBatch {
  const Cupti &cupti;
  ProcessLog &log;
  bool lost;       // there was no memory for them: they are only to be counted, by type, as dropped
  uint8_t *bytes;  // whole records, 8-byte aligned
  size_t size;
  int64_t offset;           // to be added to each time that is not 0: CUPTI runs on another clock than we do
  bool forced = false;      // asked for as it is: work that still runs has no times
  uint32_t own_thread = 0;  // whose canaries next_record() leaves out
  mutable bool canary = false;  // it has come by one
  mutable bool news = false;    // it has come by something else that flushes do not make
};

// A context that the program made, or a stream in one: by what the program knows them, and CUPTI's numbers.
struct CuptiMade {
  uint64_t context_handle;  // CUcontext
  uint64_t stream_handle;   // CUstream, 0: it is about the context
  uint32_t context;
  uint32_t stream;
};

// Calls into a source. CUPTI may hold locks meanwhile: no function here waits, throws, or calls CUPTI, except as noted below.
struct CuptiSource {
  //! A recording begins: called before any batch of it. Callers see to it that no two begin at once.
  void (*begin)(const Cupti &cupti, ProcessLog &log, const CudaSettings &settings);

  //! [MT] Walks and records a batch, on any thread. May call next_record() alone.
  void (*records)(const CuptiBatch &batch);

  //! [MT] Something happened to the recording itself. Before `begin` too.
  void (*notice)(ProcessLog &log, CudaNotice notice, int64_t value, std::string_view text);

  //! Whether `api_call` receives calls of this function. Called once per recording for each of them, after `begin`.
  bool (*wants_api_call)(CuptiDomain domain, uint32_t cbid);

  //! [MT] Enter and exit of such a call, on the thread that makes it. `call->correlation_data` is a word that is kept in between.
  void (*api_call)(CuptiDomain domain, uint32_t cbid, const CuptiCallbackData *call);

  //! [MT] On the thread that makes it.
  void (*made)(ProcessLog &log, const CuptiMade &made);

  //! [MT] A node of a graph, on the thread that makes it (null: it has no log): CUPTI's number, and that of the node that it is a copy
  //! of (0: of none).
  void (*graph_node)(ProcessLog &log, const ThreadLog *thread, uint64_t node, uint64_t original);
};

//! Whether a record is of the call that our own thread makes to see whether records still come; see cupti_canary.h.
inline bool is_canary(const CuptiActivity &record, uint32_t own_thread) {
  if (record.kind != kCuptiDriver) {
    return false;
  }
  const auto &call = reinterpret_cast<const CuptiApiActivity &>(record);
  return call.cbid == kCuptiDeviceGetCount && call.tid == own_thread;
}

//! The next record of a batch, or its first one if `*record` is null; false at the end. Lock-free.
inline bool next_record(const CuptiBatch &batch, CuptiActivity **record) {
  const CuptiFunctions &call = *batch.cupti.call;
  for (;;) {
    CuptiResult result =
        batch.cupti.several && call.activity_get_next_record_v2 != nullptr
            ? call.activity_get_next_record_v2(batch.cupti.subscriber, batch.bytes, batch.size, record)
            : call.activity_get_next_record(batch.bytes, batch.size, record);
    if (result != kCuptiSuccess) {
      return false;
    }
    if (!is_canary(**record, batch.own_thread)) [[likely]] {
      batch.news = batch.news || (*record)->kind != kCuptiOverhead;
      return true;
    }
    batch.canary = true;
  }
}

//! [MT] What cuptiGetCallbackName says, null if nothing. Costs some 100 ns: ask once per function. Defined in cupti.cpp.
const char *cupti_callback_name(const Cupti &cupti, CuptiDomain domain, uint32_t cbid);

//! Defined in sources/cuda.cpp.
extern const CuptiSource kCudaSource;

}  // namespace warplens::agent
