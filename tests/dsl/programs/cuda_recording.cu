// Kernels that record what a test can foretell; run on the CPU by test_cuda_host.py, compiled for GPUs by test_cuda_code.py.
#include "warplens.cuh"

WARPLENS_TAGS(Tag, outer, inner, crossing, moment)

#ifdef __CUDACC__
#define LEAVE() asm volatile("exit;")
#else
#define LEAVE() ::warplens::host::leave()
#endif

extern "C" __global__ void regions(int count, void *profile) {
  warplens::Profiler prof(profile);
  for (int i = 0; i < count; ++i) {
    WARPLENS_REGION(prof, Tag::outer, i);
    WARPLENS_REGION(prof, Tag::inner);
  }
}

extern "C" __global__ void tokens(void *profile) {
  warplens::Profiler prof(profile);
  auto first = prof.start();
  auto second = prof.start();
  prof.stop(first, Tag::crossing, threadIdx.x);
  prof.mark(Tag::moment);
  prof.mark(Tag::moment, 0xFFFFFFFFu);
  prof.stop(second, Tag::crossing);
  prof.finish();
  prof.mark(Tag::moment);  // not recorded: the unit has ended
}

// Odd blocks leave without an end of their units; warp 1 of the others returns early, which is an end.
extern "C" __global__ void leaving(void *profile) {
  warplens::Profiler prof(profile);
  for (int i = 0; i < 3; ++i) WARPLENS_REGION(prof, Tag::outer, i);
  if (blockIdx.x % 2 == 1) LEAVE();
  if (threadIdx.x / 32 == 1) return;
  prof.mark(Tag::moment);
}

// Half of the lanes leave early; those of warp 1 all do.
extern "C" __global__ void rings(int count, void *profile) {
  __shared__ warplens::Ring<2> ring;
  warplens::Profiler prof(profile, ring);
  for (int i = 0; i < count; ++i) {
    WARPLENS_REGION(prof, i % 2 == 0 ? Tag::outer : Tag::inner);
  }
  if (threadIdx.x % 2 == 1 || threadIdx.x >= 32) return;
  prof.mark(Tag::moment);
}

// Sums over the block by every means that the CPU has to imitate; recording must not disturb it.
extern "C" __global__ void sum(const int *in, int *out, void *profile) {
  __shared__ int parts[32];
  __shared__ int arrived;
  warplens::Profiler prof(profile, blockIdx.x == 0);
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (threadIdx.x == 0) arrived = 0;
  int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  {
    WARPLENS_REGION(prof, Tag::inner);
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xFFFFFFFF, value, step);
    if (lane == 0) parts[warp] = value;
  }
  __syncthreads();
  atomicAdd(&arrived, 1);
  __syncthreads();
  {
    WARPLENS_REGION(prof, Tag::outer);
    if (threadIdx.x == 0) {
      int total = 0;
      for (unsigned i = 0; i < blockDim.x / 32; ++i) total += parts[i];
      out[blockIdx.x] = total * (arrived == static_cast<int>(blockDim.x));
    }
  }
}
