// Times a sampler's ticks by absolute deadlines.
// So ticks stay evenly spaced. Missed ticks are counted, not made up for.
//
// For 1,000 Hz the deadlines are 0, 1, 2, … ms after the start. A sampler that comes back at 4.5 ms
// after the one at 1 ms misses those at 2 and 3 ms; they are counted as missed and as due, so that
// the weights of samples still add up to the time.
#include "pace.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <utility>

namespace warplens::agent {
namespace {

constexpr uint32_t kLooks = 128;   // between two checks of what they cost
constexpr uint32_t kPatience = 3;  // checks: a program that starts shows much that is new
constexpr uint64_t kLongest = 100'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

uint64_t read_clock(clockid_t clock) {
  timespec time;
  syscall(SYS_clock_gettime, clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * kSecond + static_cast<uint64_t>(time.tv_nsec);
}

}  // namespace

Pace::Pace(uint32_t hz, uint32_t share)
    : asked_(kSecond / (hz != 0 ? hz : 1000)), share_(share), interval_(asked_) {}

bool Pace::wait(std::atomic<uint32_t> &stop) {
  uint64_t now = read_clock(CLOCK_MONOTONIC);
  if (next_ == 0) {
    next_ = now;
    looks_ = 0;
    used_then_ = read_clock(CLOCK_THREAD_CPUTIME_ID);
  }
  next_ += interval_;
  ++due_;
  if (next_ + interval_ < now) {
    uint64_t late = (now - next_) / interval_;
    missed_ += late;
    due_ += late;
    next_ += late * interval_;
  }
  while (stop.load(std::memory_order_acquire) == 0) {
    if (now >= next_) {
      return true;
    }
    wait_at(stop, 0, next_);
    now = read_clock(CLOCK_MONOTONIC);
  }
  return false;
}

bool Pace::adapt() {
  if (++looks_ < kLooks) {
    return false;
  }
  uint64_t used = read_clock(CLOCK_THREAD_CPUTIME_ID);
  uint64_t cost = (used - used_then_) / looks_;  // ns of one look
  looks_ = 0;
  used_then_ = used;
  uint64_t before = interval_;
  dear_ = cost * 1000 > share_ * interval_ ? dear_ + 1 : 0;
  if (dear_ == kPatience) {
    dear_ = 0;
    uint64_t wanted = cost * 1000 / share_;
    interval_ = wanted > interval_ * 2 ? wanted : interval_ * 2;
    interval_ = interval_ < kLongest ? interval_ : kLongest;
    interval_ = interval_ > asked_ ? interval_ : asked_;
  } else if (interval_ > asked_ && cost * 3000 < share_ * interval_) {
    interval_ = interval_ / 2 > asked_ ? interval_ / 2 : asked_;
  }
  return interval_ != before;
}

uint64_t Pace::take_due() {
  return std::exchange(due_, 0);
}

uint64_t Pace::take_missed() {
  return std::exchange(missed_, 0);
}

void wait_at(std::atomic<uint32_t> &word, uint32_t value, uint64_t deadline) {
  timespec time{static_cast<time_t>(deadline / kSecond), static_cast<long>(deadline % kSecond)};
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value, &time, nullptr,
          FUTEX_BITSET_MATCH_ANY);
}

void wake_at(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace warplens::agent
