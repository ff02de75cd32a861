// Converts times of the program's own clocks to the spool's clock.
// They come with counters and with events that are submitted later.
#pragma once

#include <cstdint>

#include "agent/source.h"

namespace warplens::agent {

//! A time of a registered time domain or of a predefined clock (NVTX_TIMESTAMP_TYPE_*; 0: ours). False when nothing ties that
//! clock to ours, or the result lies in the future; then `out` is now. Calls the program's clock: hold no lock.
class TimeConversion {
 public:
  TimeConversion(const ClockParams &clock, uint16_t domain, uint64_t time_domain);
  bool operator()(int64_t time, uint64_t &out) const;
  uint64_t now() const { return now_; }

 private:
  uint64_t now_;
  bool known_ = false;
  // ours = base_ours + (time - base) * slope
  int64_t base_ = 0;
  int64_t base_ours_ = 0;
  double slope_ = 1;
};

}  // namespace warplens::agent
