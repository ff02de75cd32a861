// What a region costs: the same loop as it is, and with a region around its body. RECORD=1 puts the region in, RECORD=2 one
// as the reference design has it: thread 0 takes the next of all slots, writes four words into it, and comes back for its begin.
#if RECORD == 1
#include "warplens.cuh"
WARPLENS_TAGS(Tag, body, rest)
#if PAYLOAD == 1
#define REGION WARPLENS_REGION(prof, Tag::rest, 7)
#elif PAYLOAD == 2
#define REGION WARPLENS_REGION(prof, Tag::rest, j)
#else
#define REGION WARPLENS_REGION(prof, Tag::rest)
#endif
#if RING
#define PROFILER                      \
  __shared__ warplens::Ring<8> ring; \
  warplens::Profiler prof(profile, ring)
#else
#define PROFILER warplens::Profiler prof(profile)
#endif
#elif RECORD == 2
typedef unsigned long long u64;
__device__ __forceinline__ u64 nanoseconds() {
  u64 now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}
struct Event {
  u64 *slot = nullptr;
  __device__ Event(u64 *slots) {
    if (threadIdx.x != 0) return;
    const u64 event = atomicAdd(slots, u64{1});
    if (event >= 256) return;
    slot = slots + 1 + 4 * event;
    slot[0] = nanoseconds();
  }
  __device__ ~Event() {
    if (slot == nullptr) return;
    slot[1] = nanoseconds() - slot[0];
    slot[2] = 1;
    slot[3] = blockIdx.x;
  }
};
#define REGION Event event(static_cast<u64 *>(profile))
#define PROFILER
#else
#define REGION
#define PROFILER
#endif

extern "C" __global__ void cost(float *x, int n, void *profile) {
  PROFILER;
  float sum = 0.f;
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
#pragma unroll 1
  for (int j = 0; j < n; ++j) {
    REGION;
    sum += x[(at + j) & 1023] * sum;
#ifdef LARGE
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += x[(at + j * 17 + i * 33) & 4095] * x[(at + j + i * 1027) & 8191];
#endif
  }
  x[at] = sum;
}
