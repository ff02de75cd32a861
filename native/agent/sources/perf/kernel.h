// Kernel frames of a sample, if the kernel shows its addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace warplens::agent {

inline constexpr size_t kMostKernelFrames = 64;

// Its half of the addresses, on x86-64 and aarch64 alike.
inline bool is_kernel_address(uint64_t address) {
  return address >> 63 != 0;
}

//! Writes the kernel's part of a chain of `length` addresses, innermost first, to `frames` (kMostKernelFrames); how many. `cut`: there
//! were more.
size_t kernel_frames(const char *chain, uint64_t length, uint64_t *frames, bool *cut);

//! Whether `symbols`, the beginning of /proc/kallsyms, has addresses. Hidden ones are all zero.
bool has_addresses(std::string_view symbols);

//! Whether the kernel shows this process where its functions are. Where it does not, a sample must not tell either.
bool shows_kernel_addresses();

}  // namespace warplens::agent
