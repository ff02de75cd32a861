// Chooses the settings of perf events.
#pragma once

#include <linux/perf_event.h>

#include "warplens/format.h"

namespace warplens::agent {

inline constexpr uint32_t kStackBytes = 16 << 10;  // of a thread's stack with each sample

#if defined(__aarch64__)
inline constexpr unsigned kSampledRegisters = 33;
inline constexpr uint64_t kSampledMask = (uint64_t{1} << 33) - 1;
#else
inline constexpr unsigned kSampledRegisters = 17;
inline constexpr uint64_t kSampledMask = 0xff01ff;  // ax bx cx dx si di bp sp ip, r8 to r15
#endif

// What samples tell of the kernel: nothing, the time in it, or also where in it.
enum class KernelPart : uint8_t { none, time, frames };

//! Samples: by cycles where `cycles`, else by the clock, `hz` times a second of each CPU.
perf_event_attr sample_attributes(bool cycles, uint32_t hz, Backtrace backtrace, KernelPart kernel);

//! Switches of threads, their beginnings and ends, and no more.
perf_event_attr switch_attributes();

}  // namespace warplens::agent
