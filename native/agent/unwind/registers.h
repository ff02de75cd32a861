// The registers that unwinding follows, by their DWARF numbers.
#pragma once

#include <cstdint>

namespace warplens::agent {

#if defined(__aarch64__)
inline constexpr unsigned kRegisters = 33;  // x0 to x30, sp, pc
inline constexpr unsigned kFramePointer = 29;
inline constexpr unsigned kStackPointer = 31;
inline constexpr unsigned kReturn = 30;
inline constexpr unsigned kProgramCounter = 32;
#else
inline constexpr unsigned kRegisters = 17;  // rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 rip
inline constexpr unsigned kFramePointer = 6;
inline constexpr unsigned kStackPointer = 7;
inline constexpr unsigned kReturn = 16;
inline constexpr unsigned kProgramCounter = 16;
#endif

struct Registers {
  uint64_t value[kRegisters];

  uint64_t pc() const { return value[kProgramCounter]; }
  uint64_t sp() const { return value[kStackPointer]; }
};

}  // namespace warplens::agent
