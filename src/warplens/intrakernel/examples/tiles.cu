// The kernel of the example in CUDA C++; warplens/intrakernel/dsl/__init__.py describes its records.
#include "warplens.cuh"

WARPLENS_TAGS(Tag, tile, load, compute, store, done)

extern "C" __global__ void tiles(const float *in, float *out, int count, void *profile) {
  warplens::Profiler prof(profile);
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x, step = gridDim.x * blockDim.x;
  for (int k = 0; k < count; ++k) {
    WARPLENS_REGION(prof, Tag::tile, k);
    float value;
    {
      WARPLENS_REGION(prof, Tag::load, k);
      value = in[at + k * step];
    }
    {
      WARPLENS_REGION(prof, Tag::compute, k);
      for (int i = 0; i < 256; ++i) value = value * 0.5f + 1.0f;
    }
    {
      WARPLENS_REGION(prof, Tag::store, k);
      out[at + k * step] = value;
    }
  }
  prof.mark(Tag::done);
}
