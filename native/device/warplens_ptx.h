// The GPU half of warplens.cuh in PTX: thread ids, the time, storing a record.
#pragma once
#include "warplens_layout.h"

#define WARPLENS_DEVICE __device__ __forceinline__

namespace warplens {
namespace machine {

// Before Hopper %globaltimer ticks once per microsecond, so those count cycles.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr u32 kNaturalClock = 0;
#else
constexpr u32 kNaturalClock = 1;
#endif

// From Hopper on an address that is a kernel's parameter is used as it is; before, one in a register saves an instruction per record.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
constexpr bool kAddressIsFree = true;
#else
constexpr bool kAddressIsFree = false;
#endif

#define WARPLENS_READ(type, constraint, instruction) \
  type value;                                        \
  asm volatile(instruction : constraint(value)::"memory")

WARPLENS_DEVICE u32 lane() {
  u32 value;
  asm("mov.u32 %0, %%laneid;" : "=r"(value));
  return value;
}

WARPLENS_DEVICE u32 lanes_below() {
  u32 value;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(value));
  return value;
}

WARPLENS_DEVICE u32 multiprocessor() {
  WARPLENS_READ(u32, "=r", "mov.u32 %0, %%smid;");
  return value;
}

WARPLENS_DEVICE u64 nanoseconds() {
  WARPLENS_READ(u64, "=l", "mov.u64 %0, %%globaltimer;");
  return value;
}

WARPLENS_DEVICE u64 cycles() {
  WARPLENS_READ(u64, "=l", "mov.u64 %0, %%clock64;");
  return value;
}

// The low word of the buffer's clock. Volatile and with a clobber of memory: else loads and the stamps pass each other.
template <u32 Clock>
WARPLENS_DEVICE u32 stamp() {
  if constexpr (Clock == 0) {
    WARPLENS_READ(u32, "=r", "mov.u32 %0, %%globaltimer_lo;");
    return value;
  } else {
    WARPLENS_READ(u32, "=r", "mov.u32 %0, %%clock;");
    return value;
  }
}

// End stamp, bounds and store are one block, so that nothing lands between them. There is no branch: lanes stay together.
// The product and the sum become one instruction (mad.wide would become two). A payload that is none is a register that nobody
// writes: that costs nothing, and nobody reads it.
#define WARPLENS_RECORD(clock, begin, word, payload)                      \
  ".reg .pred fits;\n\t.reg .u32 now, none;\n\t.reg .u64 slot;\n\t"       \
  "mov.u32 now, " clock                                                   \
  ";\n\t"                                                                 \
  "setp.lt.u32 fits, %0, %1;\n\t"                                         \
  "mul.wide.u32 slot, %0, 16;\n\t"                                        \
  "add.s64 slot, slot, %2;\n\t"                                           \
  "@fits st.global.cs.v4.u32 [slot], {" begin ", now, " word ", " payload \
  "};\n\t"                                                                \
  "add.s32 %0, %0, 1;\n\t"

template <u32 Clock, bool HasPayload, bool IsMark>
WARPLENS_DEVICE void record(u64 records, u32 &cursor, u32 limit, u32 begin, u32 word, u32 payload) {
#define WARPLENS_ASM(clock, first, last, ...)                        \
  asm volatile("{\n\t" WARPLENS_RECORD(clock, first, "%3", last) "}" \
               : "+r"(cursor)                                        \
               : "r"(limit), "l"(records), "r"(word), __VA_ARGS__    \
               : "memory")
#define WARPLENS_SHAPES(clock)                                 \
  if constexpr (IsMark && HasPayload)                          \
    WARPLENS_ASM(clock, "now", "%4", "r"(payload));            \
  else if constexpr (IsMark)                                   \
    WARPLENS_ASM(clock, "now", "none", "n"(0));                \
  else if constexpr (HasPayload)                               \
    WARPLENS_ASM(clock, "%4", "%5", "r"(begin), "r"(payload)); \
  else                                                         \
    WARPLENS_ASM(clock, "%4", "none", "r"(begin));
  if constexpr (Clock == 0) {
    WARPLENS_SHAPES("%%globaltimer_lo")
  } else {
    WARPLENS_SHAPES("%%clock")
  }
#undef WARPLENS_SHAPES
#undef WARPLENS_ASM
}

// A ring is never full: `limit` only says whether this lane records at all. Rings are aligned to their size. Of a %clock whose low
// word is read by every lane, and not stored as it is, ptxas makes a slow read per warp (S2UR).
#define WARPLENS_RING_RECORD(clock)                                    \
  asm volatile(                                                        \
      "{\n\t"                                                          \
      ".reg .pred leads;\n\t.reg .u32 took, slot;\n\t.reg .u64 c;\n\t" \
      "setp.ne.u32 leads, %1, 0;\n\t" clock                            \
      ";\n\t"                                                          \
      "sub.u32 took, took, %3;\n\t"                                    \
      "min.u32 took, took, 0xFFFFFF;\n\t"                              \
      "or.b32 took, took, %4;\n\t"                                     \
      "and.b32 slot, %0, %5;\n\t"                                      \
      "or.b32 slot, slot, %2;\n\t"                                     \
      "@leads st.shared.v2.u32 [slot], {%3, took};\n\t"                \
      "add.u32 %0, %0, 8;\n\t"                                         \
      "}"                                                              \
      : "+r"(cursor)                                                   \
      : "r"(limit), "r"(ring), "r"(begin), "r"(word), "n"(Bytes - 1)   \
      : "memory")

using RingAddress = u32;
template <class Array>
WARPLENS_DEVICE RingAddress ring_address(Array &array) {
  return static_cast<u32>(__cvta_generic_to_shared(&array));
}

template <u32 Clock, u32 Bytes>
WARPLENS_DEVICE void ring_record(RingAddress ring, u32 &cursor, u32 limit, u32 begin, u32 word) {
  if constexpr (Clock == 0) {
    WARPLENS_RING_RECORD("mov.u32 took, %%globaltimer_lo");
  } else {
    WARPLENS_RING_RECORD("mov.u64 c, %%clock64;\n\tcvt.u32.u64 took, c");
  }
}

WARPLENS_DEVICE u64 ring_read(RingAddress ring, u32 offset) {
  u64 value;
  asm volatile("ld.shared.u64 %0, [%1];" : "=l"(value) : "r"(ring + offset) : "memory");
  return value;
}

// Lanes that are here together, after what they wrote is seen by each other. Any subset is right, all of them is fastest.
WARPLENS_DEVICE u32 together() {
  u32 mask = __activemask();
  __syncwarp(mask);
  return mask;
}

WARPLENS_DEVICE u32 from_lane(u32 mask, u32 value, u32 source) {
  return __shfl_sync(mask, value, source);
}

WARPLENS_DEVICE RingAddress ring_from_lane(u32 mask, RingAddress ring, u32 source) {
  return __shfl_sync(mask, ring, source);
}

WARPLENS_DEVICE u32 count(u64 bits) {
  return static_cast<u32>(__popcll(bits));
}

template <u32 At>
WARPLENS_DEVICE u32 claim(u64 header) {
  u32 before;
  asm volatile("atom.global.add.u32 %0, [%1+%2], 1;" : "=r"(before) : "l"(header), "n"(At) : "memory");
  return before;
}

template <u32 At>
WARPLENS_DEVICE void raise(u64 header, u64 value) {
  asm volatile("red.global.max.u64 [%0+%1], %2;" ::"l"(header), "n"(At), "l"(value) : "memory");
}

// Written once and not read on the device: past the caches that the kernel's own data wants.
WARPLENS_DEVICE void store(u64 where, u32 low, u32 high) {
  asm volatile("st.global.cs.v2.u32 [%0], {%1, %2};" ::"l"(where), "r"(low), "r"(high) : "memory");
}

WARPLENS_DEVICE void store(u64 where, u64 value) {
  asm volatile("st.global.cs.u64 [%0], %1;" ::"l"(where), "l"(value) : "memory");
}

WARPLENS_DEVICE void store(u64 where, u32 value) {
  asm volatile("st.global.cs.u32 [%0], %1;" ::"l"(where), "r"(value) : "memory");
}

WARPLENS_DEVICE u64 global_address(void *where) {
  return __cvta_generic_to_global(where);
}

// A field of the head. It happens where it stands: values that are loaded early would take registers, as would addresses of fields.
template <u32 At>
WARPLENS_DEVICE u32 load1(u64 header) {
  u32 value;
  asm volatile("ld.global.u32 %0, [%1+%2];" : "=r"(value) : "l"(header), "n"(At) : "memory");
  return value;
}

template <u32 At>
WARPLENS_DEVICE u64 load2(u64 header) {
  u64 value;
  asm volatile("ld.global.u64 %0, [%1+%2];" : "=l"(value) : "l"(header), "n"(At) : "memory");
  return value;
}

WARPLENS_DEVICE u32 linear_cta() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

WARPLENS_DEVICE u32 warp_in_cta() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}

#undef WARPLENS_READ
#undef WARPLENS_RECORD
#undef WARPLENS_RING_RECORD

}  // namespace machine
}  // namespace warplens
