// CUPTI's two buffer callbacks: one requests an empty buffer, one returns a buffer with records.
//
// CUPTI calls request and complete on any thread, also inside of calls of the program, so nothing here
// waits or takes a lock of the agent. If no record is wanted, CUPTI gets a discard.
#include <algorithm>
#include <cerrno>

#include "state.h"

namespace warplens::agent {
namespace {

void request(uint8_t **buffer, size_t *size, size_t *max_records) {
  CuptiState &state = g_cupti;
  *max_records = 0;
  int saved = errno;
  bool wanted = is_cupti_usable() && state.log.load(std::memory_order_relaxed) != nullptr;
  uint8_t *memory = wanted ? state.buffers.take() : nullptr;
  *size = CuptiBuffers::kSize;
  // No buffer at all makes older versions crash; newer ones count what they drop.
  if (memory == nullptr && (!wanted || state.cupti.version < kCupti129)) {
    memory = state.buffers.take_discard();
    *size = CuptiBuffers::kDiscardSize;
  } else if (memory == nullptr) {
    *size = 0;
  }
  *buffer = memory;
  errno = saved;
}

void pass_on(uint8_t *buffer, size_t size, bool lost) {
  CuptiState &state = g_cupti;
  ProcessLog *log = state.log.load(std::memory_order_acquire);
  if (log != nullptr && size != 0) {
    CuptiBatch batch{state.cupti,
                     *log,
                     lost,
                     buffer,
                     size,
                     state.offset.load(std::memory_order_relaxed),
                     state.forcing.load(std::memory_order_relaxed),
                     state.thread_id.load(std::memory_order_relaxed)};
    kCudaSource.records(batch);
    state.canaries.fetch_add(batch.canary ? 1 : 0, std::memory_order_relaxed);
    state.news.fetch_add(batch.news ? 1 : 0, std::memory_order_relaxed);
    state.batches.fetch_add(1, std::memory_order_relaxed);
  }
}

void complete(uint8_t *buffer, size_t size, size_t valid) {
  CuptiState &state = g_cupti;
  if (buffer == nullptr || state.alive == nullptr || state.alive->load(std::memory_order_relaxed) != 1) {
    return;  // a fork child: these are its parent's
  }
  int saved = errno;
  size_t used = std::min(valid, size);
  bool alone = false;
  if (state.buffers.is_discard(buffer, &alone)) {
    if (alone) {
      pass_on(buffer, std::min(used, CuptiBuffers::kDiscardSize), true);
    } else if (ProcessLog *log = state.log.load(std::memory_order_acquire)) {
      log->file().count(kCuptiDropped);  // several threads wrote into it: there is no telling how many
      state.dropped.fetch_add(1, std::memory_order_relaxed);
    }
    state.buffers.give_back_discard(buffer);
  } else if (state.buffers.claim(buffer)) {
    pass_on(buffer, std::min(used, CuptiBuffers::kSize), false);
    state.buffers.give_back(buffer, used);
  }
  errno = saved;
}

void request_one(uint8_t **buffer, size_t *size, size_t *max_records) {
  request(buffer, size, max_records);
}

void complete_one(CudaContext, uint32_t, uint8_t *buffer, size_t size, size_t valid) {
  complete(buffer, size, valid);
}

void request_several(uint8_t **buffer, size_t *size, size_t *max_records, CuptiRequestInfo *) {
  request(buffer, size, max_records);
}

void complete_several(uint8_t *buffer, size_t size, size_t valid, CuptiCompleteInfo *) {
  complete(buffer, size, valid);
}

// Never from CUPTI's callbacks: it may hold the lock that this takes.
void count_dropped() {
  CuptiState &state = g_cupti;
  size_t dropped = 0;
  const CuptiFunctions &call = *state.cupti.call;
  CuptiResult result =
      state.cupti.several && call.activity_get_num_dropped_records_v2 != nullptr
          ? call.activity_get_num_dropped_records_v2(state.cupti.subscriber, nullptr, 0, &dropped)
          : call.activity_get_num_dropped_records(nullptr, 0, &dropped);
  ProcessLog *log = state.log.load(std::memory_order_acquire);
  if (result == kCuptiSuccess && dropped != 0 && log != nullptr) {
    state.dropped.fetch_add(dropped, std::memory_order_relaxed);
    log->file().header()->dropped[kCuptiDropped].fetch_add(dropped, std::memory_order_relaxed);
  }
}

}  // namespace

void register_cupti_buffers() {
  const Cupti &cupti = g_cupti.cupti;
  CuptiResult result = cupti.several ? cupti.call->activity_register_callbacks_v2(
                                           cupti.subscriber, request_several, complete_several)
                                     : cupti.call->activity_register_callbacks(request_one, complete_one);
  if (result != kCuptiSuccess) {
    cupti_notice(CudaNotice::failed, result, "cuptiActivityRegisterCallbacks");
  }
}

void flush_cupti(uint32_t flags) {
  CuptiState &state = g_cupti;
  if (is_cupti_usable() && state.log.load(std::memory_order_acquire) != nullptr) {
    state.forcing.store((flags & kCuptiFlushForced) != 0, std::memory_order_relaxed);
    state.cupti.call->activity_flush_all(flags);
    state.forcing.store(false, std::memory_order_relaxed);
    count_dropped();
  }
}

}  // namespace warplens::agent
