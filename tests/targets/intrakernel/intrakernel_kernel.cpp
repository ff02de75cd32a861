// A kernel of CUDA C++ on the CPU, in a program that has no Python: two blocks of two warps, which record four tiles each.
#include <cstdio>
#include <vector>

#include "warplens.cuh"
#include "warplens_program.h"

#define NAMES tile, load, multiply, done
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(names) TEXT_OF(names)
WARPLENS_TAGS(Tag, NAMES)

__global__ void tiles(float *x, int count, void *profile) {
  warplens::Profiler prof(profile);
  for (int k = 0; k < count; ++k) {
    WARPLENS_REGION(prof, Tag::tile, k);
    {
      WARPLENS_REGION(prof, Tag::load);
      x[threadIdx.x] += static_cast<float>(k);
    }
    WARPLENS_REGION(prof, Tag::multiply);
    x[threadIdx.x] *= 2;
  }
  prof.mark(Tag::done);
}

int main() {
  const warplens_shape shape = warplens_slices(2, 2, 16);
  std::vector<std::uint64_t> memory(warplens_bytes(&shape) / 8);
  warplens_head(&shape, 1, memory.data());
  const std::uint32_t buffer = warplens_register(reinterpret_cast<std::uint64_t>(memory.data()),
                                                 warplens_bytes(&shape), 0, TEXT(NAMES), "tiles");
  std::vector<float> x(64);
  warplens_launch(buffer, 1, 0, nullptr);
  warplens::host::launch(2, 64, [&] { tiles(x.data(), 4, memory.data()); });
  warplens_unregister(buffer);
  std::printf("%g\n", x[5]);
}
