// Makes CUPTI use the agent's clock.
// The agent registers its clock once, before CUPTI begins: later, records under way would be on two
// clocks. If it is too late, CUPTI's times are shifted by the difference of the clocks.
#include <cstdlib>

#include "agent/source.h"
#include "spool/system/clock.h"
#include "state.h"

namespace warplens::agent {
namespace {

constexpr int64_t kSameClock = 1'000'000;  // ns; clocks of different kinds are hours or years apart

uint64_t our_clock() {
  return now_ns(process_clock());
}

bool ask(uint64_t *time) {
  const Cupti &cupti = g_cupti.cupti;
  return (cupti.several && cupti.call->get_timestamp_v2 != nullptr
              ? cupti.call->get_timestamp_v2(cupti.subscriber, time)
              : cupti.call->get_timestamp(time)) == kCuptiSuccess;
}

// What is to be added to CUPTI's times, and how wrong that may be; false when it does not tell its time.
bool measure(int64_t *offset, int64_t *uncertainty) {
  *uncertainty = INT64_MAX;
  for (int i = 0; i < 20; ++i) {
    uint64_t theirs = 0;
    uint64_t before = our_clock();
    bool told = ask(&theirs);
    uint64_t after = our_clock();
    if (!told || theirs == 0) {
      return false;
    }
    auto width = static_cast<int64_t>(after - before);
    if (width < *uncertainty) {
      *uncertainty = width;
      *offset = static_cast<int64_t>(before + static_cast<uint64_t>(width) / 2 - theirs);
    }
  }
  return true;
}

}  // namespace

void give_cupti_our_clock() {
  CuptiState &state = g_cupti;
  const Cupti &cupti = state.cupti;
  if (state.clock_is_ours) {
    return;
  }
  CuptiResult result = kCuptiNotSupported;
  if (cupti.several) {  // each subscriber has its own
    CuptiTimestampCallback clock = our_clock;
    size_t size = sizeof(clock);
    if (cupti.call->activity_set_attribute_v2 != nullptr) {
      result = cupti.call->activity_set_attribute_v2(cupti.subscriber, kCuptiTimestamps, &size, &clock);
    }
  } else {
    uint8_t running = 0;
    bool others = cupti.call->is_tracing_session_running != nullptr &&
                  cupti.call->is_tracing_session_running(&running) == kCuptiSuccess && running != 0;
    if (!others) {  // it would change theirs, too
      result = cupti.call->activity_register_timestamp_callback(our_clock);
    }
  }
  state.clock_is_ours = result == kCuptiSuccess;
}

void check_cupti_clock(bool last) {
  CuptiState &state = g_cupti;
  int64_t offset = 0;
  int64_t uncertainty = 0;
  state.offset.store(0);
  state.is_converted.store(false);
  state.clock_is_judged = true;
  if (!measure(&offset, &uncertainty) || std::llabs(offset) < kSameClock) {
    return;
  }
  if (state.clock_is_ours && !last) {
    state.clock_is_judged =
        false;  // it may not use it before CUDA has started; until then nothing comes of the GPU
    return;
  }
  if (state.clock_is_ours) {
    cupti_notice(CudaNotice::clock, offset, "");  // it took our clock, and does not use it
  }
  state.offset.store(offset);
  state.is_converted.store(true);
  cupti_notice(CudaNotice::converted, uncertainty, "");
}

void follow_cupti_clock() {
  CuptiState &state = g_cupti;
  int64_t offset = 0;
  int64_t uncertainty = 0;
  if (!state.clock_is_judged && state.has_context.load()) {
    check_cupti_clock(true);
  }
  if (state.is_converted.load() && measure(&offset, &uncertainty)) {
    state.offset.store(offset);
  }
}

}  // namespace warplens::agent
