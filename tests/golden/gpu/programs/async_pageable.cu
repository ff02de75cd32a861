// 200 copies of pageable memory by cudaMemcpyAsync, which blocks the host; the host then computes. --fix pins the memory.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <chrono>
__global__ void scale(float* x, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) for (int k = 0; k < 50; ++k) x[i] = x[i] * 1.0001f + 0.5f; }
int main(int argc, char** argv) {
  bool fix = argc > 1 && !strcmp(argv[1], "--fix");
  const size_t n = 4 << 20;
  float *x, *host; cudaMalloc(&x, n * 4);
  if (fix) cudaMallocHost(&host, n * 4); else host = (float*)malloc(n * 4);
  memset(host, 0, n * 4);
  cudaDeviceSynchronize();
  auto t = std::chrono::steady_clock::now();
  volatile double work = 0;
  for (int step = 0; step < 200; ++step) {
    cudaMemcpyAsync(x, host, n * 4, cudaMemcpyHostToDevice);
    scale<<<528, 256>>>(x, (int)n);
    for (int i = 0; i < 2000000; ++i) work += i;
  }
  cudaDeviceSynchronize();
  printf("%.2f ms\n", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count());
  return cudaGetLastError();
}
