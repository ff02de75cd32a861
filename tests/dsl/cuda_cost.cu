// What a region costs: the same loop as it is, and with a region around its body. RECORD=1 puts the region in.
#if RECORD
#include "warpline.cuh"
WARPLINE_TAGS(Tag, body, rest)
#if PAYLOAD == 1
#define REGION WARPLINE_REGION(prof, Tag::rest, 7)
#elif PAYLOAD == 2
#define REGION WARPLINE_REGION(prof, Tag::rest, j)
#else
#define REGION WARPLINE_REGION(prof, Tag::rest)
#endif
#if RING
#define PROFILER                      \
  __shared__ warpline::Ring<8> ring; \
  warpline::Profiler prof(profile, ring)
#else
#define PROFILER warpline::Profiler prof(profile)
#endif
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
