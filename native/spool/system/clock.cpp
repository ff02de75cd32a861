// Chooses and calibrates the counter behind the clock.
#include "clock.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace warplens {
namespace {

#if defined(__x86_64__)
bool kernel_trusts_tsc() {
  // The kernel watches the TSC against other clocks and drops it when it drifts or differs between CPUs.
  int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  char name[16] = {};
  ssize_t n = read(fd, name, sizeof(name) - 1);
  close(fd);
  return n >= 3 && std::strncmp(name, "tsc", 3) == 0;
}

bool tsc_is_invariant() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}
#endif

}  // namespace

ClockKind best_clock_kind() {
#if defined(__x86_64__)
  if (tsc_is_invariant() && kernel_trusts_tsc()) {
    return ClockKind::tsc;
  }
#elif defined(__aarch64__)
  return ClockKind::cntvct;  // architecturally constant-rate and common to all CPUs
#endif
  return ClockKind::monotonic;
}

ClockSample sample_clocks(ClockKind kind) {
  ClockSample best{};
  uint64_t best_width = UINT64_MAX;
  for (int i = 0; i < 16; ++i) {
    uint64_t counter0 = read_counter(kind);
    uint64_t realtime0 = clock_ns(CLOCK_REALTIME);
    uint64_t monotonic = clock_ns(CLOCK_MONOTONIC);
    uint64_t realtime1 = clock_ns(CLOCK_REALTIME);
    uint64_t counter1 = read_counter(kind);
    if (counter1 - counter0 < best_width) {
      best_width = counter1 - counter0;
      best = {counter0 + (counter1 - counter0) / 2, monotonic, realtime0 + (realtime1 - realtime0) / 2};
    }
  }
  if (kind == ClockKind::monotonic) {
    best.counter = best.monotonic;
  }
  return best;
}

ClockParams calibrate(ClockKind kind, const ClockSample &early, const ClockSample &late) {
  ClockParams plain{ClockKind::monotonic, 0, 0, 0, 1};
  if (kind == ClockKind::monotonic || late.counter <= early.counter || late.monotonic <= early.monotonic) {
    return plain;
  }
  constexpr uint32_t kShift = 40;
  auto ns = static_cast<unsigned __int128>(late.monotonic - early.monotonic) << kShift;
  auto mult = static_cast<uint64_t>(ns / (late.counter - early.counter));
  // 1 MHz .. 1 THz; anything else is a broken sample.
  if (mult < (uint64_t{1} << kShift) / 1000 || mult > (uint64_t{1000} << kShift)) {
    return plain;
  }
  // The origin lies an hour back: a CPU whose counter reads a hair less than the sample must not wrap.
  uint64_t back_ns = late.monotonic < 3'600'000'000'000u ? late.monotonic / 2 : 3'600'000'000'000u;
  auto back = static_cast<uint64_t>((static_cast<unsigned __int128>(back_ns) << kShift) / mult);
  if (back > late.counter) {
    back = late.counter;
  }
  uint64_t span_ns = static_cast<uint64_t>((static_cast<unsigned __int128>(back) * mult) >> kShift);
  return {kind, kShift, late.counter - back, late.monotonic - span_ns, mult};
}

}  // namespace warplens
