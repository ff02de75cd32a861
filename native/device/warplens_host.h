// The same recorder without a GPU: kernels compiled by g++ or clang++ run on the CPU, one thread block after the other, with a real
// clock. It is for trying out and for tests: threadIdx and its kin, __shared__ (static), __syncthreads, __syncwarp, shuffles,
// atomicAdd and asynchronous copies (warplens_host_copies.h) work; no thread runs beside another, so a thread that waits for
// another in a loop calls __nanosleep there.
#pragma once
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "warplens_layout.h"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define WARPLENS_DEVICE inline

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

namespace warplens {
namespace host {

constexpr unsigned kWarp = 32;
constexpr std::size_t kStack = 256 << 10;

enum class Waits { no, for_warp, for_block, gone };

// Copies that a thread began, and when they are there.
struct Copies {
  struct One {
    void *to;
    const void *from;
    std::size_t bytes;
  };
  std::vector<One> all;
  std::uint64_t there;
};

// One thread of the block, with its own stack.
struct Thread {
  ucontext_t context;
  uint3 index;
  Waits waits;
  std::uint64_t asleep;  // until then, by now()
  std::vector<Copies::One> begun;
  std::deque<Copies> under_way;  // the oldest first
};

// The block that runs. Threads take turns: each runs until it waits for others.
struct Block {
  std::vector<Thread> threads;
  std::vector<std::uint64_t> passed;  // by shuffles, of each thread
  ucontext_t scheduler;
  unsigned current = 0;
  const std::function<void()> *kernel = nullptr;
};

inline Block *block = nullptr;

inline void wait(Waits what) {
  Thread &thread = block->threads[block->current];
  thread.waits = what;
  swapcontext(&thread.context, &block->scheduler);
}

inline std::uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1000000000u + static_cast<std::uint64_t>(time.tv_nsec);
}

// Lets the others go on until then.
inline void sleep_until(std::uint64_t then) {
  block->threads[block->current].asleep = then;
  wait(Waits::no);
}

// Ends this thread where it stands, as `asm("exit;")` does: no destructor runs.
[[noreturn]] inline void leave() {
  wait(Waits::gone);
  std::abort();  // nobody goes on with a thread that is gone
}

inline void run_thread() {
  (*block->kernel)();
  leave();
}

inline bool any(Waits what, unsigned from, unsigned to) {
  return std::any_of(block->threads.begin() + from, block->threads.begin() + to,
                     [=](const Thread &t) { return t.waits == what; });
}

inline void release(Waits what, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; ++i)
    if (block->threads[i].waits == what) block->threads[i].waits = Waits::no;
}

// Nobody has anything to do until then.
inline void idle_until(std::uint64_t then) {
  const timespec time{static_cast<time_t>(then / 1000000000u), static_cast<long>(then % 1000000000u)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr);
}

// Threads that are gone count as arrived, as on a GPU.
inline void run_block() {
  const unsigned count = static_cast<unsigned>(block->threads.size());
  for (;;) {
    std::uint64_t next = ~std::uint64_t{0};
    bool ran = false;
    for (unsigned i = 0; i < count; ++i) {
      if (block->threads[i].waits != Waits::no) continue;
      const std::uint64_t asleep = block->threads[i].asleep;
      if (asleep != 0 && asleep > now()) {
        next = std::min(next, asleep);
        continue;
      }
      ran = true;
      block->threads[i].asleep = 0;
      block->current = i;
      threadIdx = block->threads[i].index;
      swapcontext(&block->scheduler, &block->threads[i].context);
    }
    for (unsigned from = 0; from < count; from += kWarp) {
      const unsigned to = std::min(from + kWarp, count);
      if (!any(Waits::no, from, to)) release(Waits::for_warp, from, to);
    }
    if (any(Waits::no, 0, count)) {
      if (!ran) idle_until(next);
      continue;
    }
    if (!any(Waits::for_block, 0, count)) return;
    release(Waits::for_block, 0, count);
  }
}

inline void start_threads(unsigned count, char *stacks) {
  block->threads.assign(count, Thread{});
  for (unsigned i = 0; i < count; ++i) {
    Thread &thread = block->threads[i];
    thread.index = {i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = stacks + i * kStack;
    thread.context.uc_stack.ss_size = kStack;
    makecontext(&thread.context, &run_thread, 0);
  }
}

// Runs `kernel()` once for each thread of each block. One launch at a time: what is __shared__ is static.
inline void launch(dim3 grid, dim3 size, const std::function<void()> &kernel) {
  static std::mutex one_at_a_time;
  const std::lock_guard<std::mutex> guard(one_at_a_time);
  const unsigned count = size.x * size.y * size.z;
  const std::size_t bytes = count * kStack;
  char *stacks = static_cast<char *>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (stacks == MAP_FAILED) {
    std::fprintf(stderr, "warplens: no memory for the stacks of %u threads\n", count);
    std::abort();
  }
  for (unsigned i = 0; i < count; ++i)
    mprotect(stacks + i * kStack, 4096, PROT_NONE);  // a stack that grows too far
  Block running;
  running.kernel = &kernel;
  running.passed.resize(count);
  block = &running;
  gridDim = grid;
  blockDim = size;
  for (unsigned cta = 0; cta < grid.x * grid.y * grid.z; ++cta) {
    blockIdx = {cta % grid.x, cta / grid.x % grid.y, cta / (grid.x * grid.y)};
    start_threads(count, stacks);
    run_block();
  }
  block = nullptr;
  munmap(stacks, bytes);
}

// Calls a kernel with what cuLaunchKernel takes: the address of each argument.
template <class... Arguments, std::size_t... I>
void call(void (*kernel)(Arguments...), void **arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<Arguments> *>(arguments[I])...);
}

template <class... Arguments>
void launch_packed(void (*kernel)(Arguments...), const unsigned *sizes, void **arguments) {
  launch(dim3(sizes[0], sizes[1], sizes[2]), dim3(sizes[3], sizes[4], sizes[5]),
         [=] { call(kernel, arguments, std::index_sequence_for<Arguments...>{}); });
}

// Lets threads of the warp meet, and passes a word between them.
template <class Value>
Value pass(Value value, unsigned from_lane) {
  static_assert(sizeof(Value) <= 8, "shuffles pass up to 8 bytes");
  const unsigned self = block->current, first = self / kWarp * kWarp;
  std::memcpy(&block->passed[self], &value, sizeof value);
  wait(Waits::for_warp);
  const unsigned from = first + from_lane % kWarp;
  if (from < block->threads.size()) std::memcpy(&value, &block->passed[from], sizeof value);
  wait(Waits::for_warp);
  return value;
}

inline unsigned linear_thread() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

}  // namespace host

// What warplens_ptx.h does with PTX.
namespace machine {

constexpr u32 kNaturalClock = 0;
constexpr bool kAddressIsFree = true;
using RingAddress = u64;

inline u32 lane() {
  return host::linear_thread() % host::kWarp;
}
inline u32 warp_in_cta() {
  return host::linear_thread() / host::kWarp;
}
inline u32 linear_cta() {
  return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}
inline u32 lanes_below() {
  return (1u << lane()) - 1;
}
inline u32 multiprocessor() {
  return 0;
}
inline u64 nanoseconds() {
  return host::now();
}
inline u64 cycles() {
  return host::now() * 3 / 2;
}  // of a GPU with 1.5 GHz

template <u32 Clock>
u32 stamp() {
  return static_cast<u32>(Clock == 0 ? nanoseconds() : cycles());
}

template <class Value>
void put(u64 where, Value value) {
  std::memcpy(reinterpret_cast<void *>(where), &value, sizeof value);
}

template <class Value>
Value get(u64 where) {
  Value value;
  std::memcpy(&value, reinterpret_cast<const void *>(where), sizeof value);
  return value;
}

inline void store(u64 where, u32 low, u32 high) {
  put(where, u64{high} << 32 | low);
}
inline void store(u64 where, u64 value) {
  put(where, value);
}
inline void store(u64 where, u32 value) {
  put(where, value);
}
template <u32 At>
u32 load1(u64 header) {
  return get<u32>(header + At);
}
template <u32 At>
u64 load2(u64 header) {
  return get<u64>(header + At);
}
inline u64 global_address(void *where) {
  return reinterpret_cast<u64>(where);
}

template <u32 At>
u32 claim(u64 header) {
  const u32 before = load1<At>(header);
  put(header + At, before + 1);
  return before;
}
template <u32 At>
void raise(u64 header, u64 value) {
  put(header + At, std::max(load2<At>(header), value));
}

template <u32 Clock, bool HasPayload, bool IsMark>
void record(u64 records, u32 &cursor, u32 limit, u32 begin, u32 word, u32 payload) {
  const u32 end = stamp<Clock>();
  if (cursor < limit) {
    const u64 slot = records + u64{cursor} * layout::kRecord;
    store(slot, IsMark ? end : begin, end);
    store(slot + 8, word, HasPayload ? payload : 0);
  }
  ++cursor;
}

template <u32 Clock, u32 Bytes>
void ring_record(RingAddress ring, u32 &cursor, u32 limit, u32 begin, u32 word) {
  const u32 took = std::min(stamp<Clock>() - begin, 0xFFFFFFu);
  if (limit != 0) store(ring + (cursor & (Bytes - 1)), begin, word | took);
  cursor += layout::kRingRecord;
}

template <class Array>
RingAddress ring_address(Array &array) {
  return reinterpret_cast<u64>(&array);
}
inline u64 ring_read(RingAddress ring, u32 offset) {
  return get<u64>(ring + offset);
}

// The lanes of the warp that meet here: those that are not gone.
inline u32 together() {
  host::wait(host::Waits::for_warp);
  u32 mask = 0;
  const unsigned first = host::block->current / host::kWarp * host::kWarp;
  for (unsigned i = 0; i < host::kWarp && first + i < host::block->threads.size(); ++i)
    mask |= u32{host::block->threads[first + i].waits != host::Waits::gone} << i;
  host::wait(host::Waits::for_warp);
  return mask;
}
template <class Value>
Value from_lane(u32, Value value, u32 source) {
  return host::pass(value, source);
}
template <class Value>
Value ring_from_lane(u32, Value value, u32 source) {
  return host::pass(value, source);
}
inline u32 count(u64 bits) {
  return static_cast<u32>(__builtin_popcountll(bits));
}

}  // namespace machine
}  // namespace warplens

inline void __syncthreads() {
  warplens::host::wait(warplens::host::Waits::for_block);
}
inline void __syncwarp(unsigned = 0xFFFFFFFF) {
  warplens::host::wait(warplens::host::Waits::for_warp);
}
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned ns) {
  warplens::host::sleep_until(warplens::host::now() + ns);
}

template <class Value>
Value __shfl_sync(unsigned, Value value, int lane) {
  return warplens::host::pass(value, static_cast<unsigned>(lane));
}
template <class Value>
Value __shfl_xor_sync(unsigned, Value value, int bits) {
  return warplens::host::pass(value, warplens::machine::lane() ^ static_cast<unsigned>(bits));
}
template <class Value>
Value __shfl_down_sync(unsigned, Value value, unsigned by) {
  const unsigned lane = warplens::machine::lane();
  return warplens::host::pass(value, lane + by < 32 ? lane + by : lane);
}
template <class Value>
Value atomicAdd(Value *where, Value value) {
  const Value before = *where;
  *where = before + value;
  return before;
}

// Makes `kernel` callable from outside: sizes of grid and block, then the address of each argument.
#define WARPLENS_HOST_KERNEL(kernel)                                                                     \
  extern "C" __attribute__((visibility("default"))) void warplens_launch_##kernel(const unsigned *sizes, \
                                                                                  void **arguments) {    \
    ::warplens::host::launch_packed(&kernel, sizes, arguments);                                          \
  }
