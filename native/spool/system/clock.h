// The clock every record is stamped with: ns of CLOCK_MONOTONIC, computed from the CPU's counter where that is safe.
#pragma once

#include <time.h>

#include <cstdint>
#include <utility>

#include "warplens/format.h"

namespace warplens {

inline uint64_t clock_ns(clockid_t id) {
  timespec t;
  clock_gettime(id, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

inline uint64_t read_counter(ClockKind kind) {
#if defined(__x86_64__)
  if (kind == ClockKind::tsc) [[likely]] {
    return __builtin_ia32_rdtsc();  // the header of intrinsics takes longer to compile than most files here
  }
#elif defined(__aarch64__)
  if (kind == ClockKind::cntvct) [[likely]] {
    uint64_t ticks;
    asm volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return clock_ns(CLOCK_MONOTONIC);
}

//! [MT][HOT] Counter ticks to ns of CLOCK_MONOTONIC.
inline uint64_t to_ns(const ClockParams &clock, uint64_t counter) {
  auto ticks = static_cast<unsigned __int128>(counter - clock.t0);
  return clock.base_ns + static_cast<uint64_t>((ticks * clock.mult) >> clock.shift);
}

//! [MT][HOT] Now, in ns of CLOCK_MONOTONIC (one counter read, about 9 ns; else one clock_gettime, about 21 ns).
inline uint64_t now_ns(const ClockParams &clock) {
#if defined(__x86_64__)
  if (clock.kind == ClockKind::tsc) [[likely]] {
    return to_ns(clock, __builtin_ia32_rdtsc());
  }
#endif
  uint64_t counter = read_counter(clock.kind);
  return clock.kind == ClockKind::monotonic ? counter : to_ns(clock, counter);
}

//! The counter this machine can be trusted with: invariant, and in use by the kernel itself.
ClockKind best_clock_kind();

//! Clocks read together; the counter and REALTIME bracket MONOTONIC, the tightest of several tries is kept.
struct ClockSample {
  uint64_t counter;
  uint64_t monotonic;
  uint64_t realtime;
};
ClockSample sample_clocks(ClockKind kind);

//! Constants for `to_ns` through two samples; falls back to `monotonic` where the samples make no sense.
ClockParams calibrate(ClockKind kind, const ClockSample &early, const ClockSample &late);

}  // namespace warplens
