// A producer warp loads tiles into shared memory, two consumer warps compute with them: a pipeline of STAGES buffers.
//
// With one buffer the producer waits until the consumers are done with a tile, and they wait until the next one is there: nothing
// overlaps. With three, two tiles are under way while the third is computed with. Compiles with nvcc, and with the compiler of the
// host for the CPU (warplens_host.h), where pipeline.py says how long memory takes.
#include "warplens.cuh"
#ifdef __CUDACC__
#include <cuda_pipeline.h>
#endif

#ifndef STAGES
#define STAGES 1
#endif

WARPLENS_TAGS(Tag, load, wait_free, wait_full, compute)

constexpr unsigned kConsumers = 2;                            // warps, behind the producer's
constexpr unsigned kUnderWay = STAGES == 1 ? 1 : STAGES - 1;  // tiles that are loaded at a time, at most
constexpr unsigned kTile = 512;                               // numbers
constexpr unsigned kPieces = kTile * 4 / (32 * 16);   // copies of 16 bytes for each lane of the producer
constexpr unsigned kOwn = kTile / (32 * kConsumers);  // numbers of a tile for each lane of the consumers
constexpr unsigned kSteps = 32;                       // of work on a tile

__device__ inline void wait_for(const volatile unsigned &count, unsigned least) {
  while (count < least) __nanosleep(100);
  __threadfence_block();
}

__device__ inline void announce(unsigned &count) {
  __threadfence_block();
  __syncwarp();
  if (threadIdx.x % 32 == 0) atomicAdd(&count, 1u);
}

extern "C" __global__ void pipeline(const float *in, float *out, unsigned tiles, unsigned work,
                                    void *profile) {
  __shared__ __align__(16) float tile[STAGES][kTile];
  __shared__ unsigned full[STAGES], freed[STAGES];  // how often so far, in all
  if (threadIdx.x < STAGES) full[threadIdx.x] = freed[threadIdx.x] = 0;
  __syncthreads();

  warplens::Profiler prof(profile);
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    const float *from = in + blockIdx.x * tiles * kTile;
    for (unsigned k = 0; k < tiles + kUnderWay - 1; ++k) {
      const unsigned stage = k % STAGES;
      if (k < tiles) {
        WARPLENS_REGION(prof, Tag::wait_free, k);
        wait_for(freed[stage], k / STAGES * kConsumers);
      }
      // Begins to load tile k, and ends when the oldest tile that is under way is there.
      WARPLENS_REGION(prof, Tag::load, k);
      for (unsigned i = 0; k < tiles && i < kPieces; ++i) {
        const unsigned at = (i * 32 + lane) * 4;
        __pipeline_memcpy_async(&tile[stage][at], &from[k * kTile + at], 16);
      }
      __pipeline_commit();
      if (k + 1 < kUnderWay) continue;
      __pipeline_wait_prior(kUnderWay - 1);
      announce(full[(k + 1 - kUnderWay) % STAGES]);
    }
  } else {
    const unsigned first = (threadIdx.x - 32) * kOwn;
    float sum = 0;
    for (unsigned k = 0; k < tiles; ++k) {
      const unsigned stage = k % STAGES;
      {
        WARPLENS_REGION(prof, Tag::wait_full, k);
        wait_for(full[stage], k / STAGES + 1);
      }
      {
        WARPLENS_REGION(prof, Tag::compute, k);
        for (unsigned step = 0; step < kSteps; ++step) {
          for (unsigned i = 0; i < work; ++i) sum = sum * 0.9f + tile[stage][first + i % kOwn];
          __syncwarp();
        }
      }
      announce(freed[stage]);
    }
    out[blockIdx.x * 32 * kConsumers + threadIdx.x - 32] = sum;
  }
}
