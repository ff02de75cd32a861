// A kernel of CUDA C++ on the CPU, in a program that has no Python: two blocks of two warps, which record four tiles each.
#include <cstdio>
#include <vector>

#include "warpline.cuh"
#include "warpline_program.h"

#define NAMES tile, load, multiply, done
#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(names) TEXT_OF(names)
WARPLINE_TAGS(Tag, NAMES)

__global__ void tiles(float *x, int count, void *profile) {
  warpline::Profiler prof(profile);
  for (int k = 0; k < count; ++k) {
    WARPLINE_REGION(prof, Tag::tile, k);
    {
      WARPLINE_REGION(prof, Tag::load);
      x[threadIdx.x] += static_cast<float>(k);
    }
    WARPLINE_REGION(prof, Tag::multiply);
    x[threadIdx.x] *= 2;
  }
  prof.mark(Tag::done);
}

int main() {
  const warpline_shape shape = warpline_slices(2, 2, 16);
  std::vector<std::uint64_t> memory(warpline_bytes(&shape) / 8);
  warpline_head(&shape, 1, memory.data());
  const std::uint32_t buffer = warpline_register(reinterpret_cast<std::uint64_t>(memory.data()),
                                                 warpline_bytes(&shape), 0, TEXT(NAMES), "tiles");
  std::vector<float> x(64);
  warpline_launch(buffer, 1, 0, nullptr);
  warpline::host::launch(2, 64, [&] { tiles(x.data(), 4, memory.data()); });
  warpline_unregister(buffer);
  std::printf("%g\n", x[5]);
}
