// What recording costs inside a kernel: the same loop with each recorder, and a matrix product with eight regions per tile.
#include "warplens.cuh"

WARPLENS_TAGS(Tag, body, fetch, park, meet, first, second, third, fourth, leave)

using u64 = unsigned long long;

// Steps of the timer, as differences between readings that differ.
extern "C" __global__ void steps(u64 *out, int count) {
  u64 last = warplens::machine::nanoseconds();
  for (int i = 0; i < count;) {
    const u64 now = warplens::machine::nanoseconds();
    if (now != last) out[i++] = now - last;
    last = now;
  }
}

#define WORK value = value * 1.0001f + 1.0f;
// Thread 0 of each block says how many ns its loop took.
#define LOOP(name, setup, around)                                                  \
  extern "C" __global__ void name(float *x, u64 *took, int count, void *profile) { \
    setup;                                                                         \
    float value = x[threadIdx.x];                                                  \
    __syncthreads();                                                               \
    const u64 begin = warplens::machine::nanoseconds();                            \
    _Pragma("unroll 1") for (int i = 0; i < count; ++i) {                          \
      around                                                                       \
    }                                                                              \
    const u64 end = warplens::machine::nanoseconds();                              \
    x[blockIdx.x * blockDim.x + threadIdx.x] = value;                              \
    if (threadIdx.x == 0) took[blockIdx.x] = end - begin;                          \
  }

LOOP(bare, (void)profile, WORK)
LOOP(region, warplens::Profiler prof(profile), WARPLENS_REGION(prof, Tag::body); WORK)
LOOP(payload, warplens::Profiler prof(profile), WARPLENS_REGION(prof, Tag::body, i); WORK)
LOOP(ring, __shared__ warplens::Ring<8> kept;
     warplens::Profiler prof(profile, kept), WARPLENS_REGION(prof, Tag::body); WORK)

// The reference design: thread 0 takes the next of all slots for each event, and comes back to it for the end.
LOOP(
    reference, u64 *slots = static_cast<u64 *>(profile), u64 event = 0; if (threadIdx.x == 0) {
      event = atomicAdd(slots, u64{1}) & 0xFFFF;
      slots[1 + 4 * event] = warplens::machine::nanoseconds();
    } WORK if (threadIdx.x == 0) {
      slots[2 + 4 * event] = warplens::machine::nanoseconds() - slots[1 + 4 * event];
      slots[3 + 4 * event] = 1;
      slots[4 + 4 * event] = blockIdx.x;
    })

constexpr int kTile = 128, kDeep = 16, kEach = 8;

// c = a * b of n x n, n a multiple of 128: 256 threads make 128 x 128, each 8 x 8 of it.
extern "C" __global__ void __launch_bounds__(256)
    multiply(const float *a, const float *b, float *c, int n, void *profile) {
  warplens::Profiler prof(profile);
  __shared__ float as[kDeep][kTile], bs[kDeep][kTile];
  const int row = threadIdx.x / 16 * kEach, column = threadIdx.x % 16 * kEach;
  a += blockIdx.y * kTile * n;
  b += blockIdx.x * kTile;
  float sum[kEach][kEach] = {};
  for (int k = 0; k < n; k += kDeep) {
    float fetched[2 * kEach];
    {
      WARPLENS_REGION(prof, Tag::fetch, k);
      for (int i = 0; i < kEach; ++i) {
        const int at = threadIdx.x + 256 * i;
        fetched[i] = a[at / kDeep * n + k + at % kDeep];
        fetched[kEach + i] = b[(k + at / kTile) * n + at % kTile];
      }
    }
    {
      WARPLENS_REGION(prof, Tag::park, k);
      for (int i = 0; i < kEach; ++i) {
        const int at = threadIdx.x + 256 * i;
        as[at % kDeep][at / kDeep] = fetched[i];
        bs[at / kTile][at % kTile] = fetched[kEach + i];
      }
    }
    {
      WARPLENS_REGION(prof, Tag::meet, k);
      __syncthreads();
    }
#define QUARTER(tag, from)                                                               \
  {                                                                                      \
    WARPLENS_REGION(prof, tag, k);                                                       \
    for (int d = from; d < from + kDeep / 4; ++d)                                        \
      for (int i = 0; i < kEach; ++i)                                                    \
        for (int j = 0; j < kEach; ++j) sum[i][j] += as[d][row + i] * bs[d][column + j]; \
  }
    QUARTER(Tag::first, 0)
    QUARTER(Tag::second, kDeep / 4)
    QUARTER(Tag::third, kDeep / 2)
    QUARTER(Tag::fourth, kDeep * 3 / 4) {
      WARPLENS_REGION(prof, Tag::leave, k);
      __syncthreads();
    }
  }
  for (int i = 0; i < kEach; ++i)
    for (int j = 0; j < kEach; ++j)
      c[(blockIdx.y * kTile + row + i) * n + blockIdx.x * kTile + column + j] = sum[i][j];
}
