// Times a sampler's ticks: evenly, and less often if a tick costs too much.
#pragma once

#include <atomic>
#include <cstdint>

namespace warplens::agent {

class Pace {
 public:
  //! `hz` times a second at most, for at most `share` thousandths of a processor.
  Pace(uint32_t hz, uint32_t share);

  //! Waits for the next time to look; false when `stop` was set and woken meanwhile.
  bool wait(std::atomic<uint32_t> &stop);

  //! After each look: whether the interval was changed, because looking takes too much time, or no longer does.
  bool adapt();

  //! Begins anew, after a pause.
  void restart() { next_ = 0; }

  uint64_t interval() const { return interval_; }  // ns
  //! Times to look since the last call of this; and those of them that came too late to be taken.
  uint64_t take_due();
  uint64_t take_missed();

 private:
  const uint64_t asked_;
  const uint64_t share_;
  uint64_t interval_;
  uint64_t next_ = 0;
  uint64_t due_ = 0;
  uint64_t missed_ = 0;
  uint32_t looks_ = 0;
  uint32_t dear_ = 0;       // checks in a row
  uint64_t used_then_ = 0;  // of the processor, when `looks_` began
};

//! Waits while *word is `value`, until `deadline` (ns of CLOCK_MONOTONIC) at most.
void wait_at(std::atomic<uint32_t> &word, uint32_t value, uint64_t deadline);
void wake_at(std::atomic<uint32_t> &word);

}  // namespace warplens::agent
