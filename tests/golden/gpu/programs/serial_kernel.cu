// One block of one thread adds up an array: the rest of the GPU idles. --fix uses many blocks.
#include <cstdio>
#include <cstring>
#include <chrono>
__global__ void serial_sum(const float* x, int n, float* out) { float s = 0; for (int i = 0; i < n; ++i) s += x[i]; *out = s; }
__global__ void wide_sum(const float* x, int n, float* out) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  for (int o = 16; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) atomicAdd(out, s);
}
__global__ void scale(float* x, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= 1.0001f; }
int main(int argc, char** argv) {
  bool fix = argc > 1 && !strcmp(argv[1], "--fix");
  const int n = 1 << 22;
  float *x, *out;
  cudaMalloc(&x, n * 4); cudaMalloc(&out, 4); cudaMemset(x, 0, n * 4);
  cudaDeviceSynchronize();
  auto t = std::chrono::steady_clock::now();
  for (int step = 0; step < 20; ++step) {
    for (int k = 0; k < 20; ++k) scale<<<528, 256>>>(x, n);
    if (fix) { cudaMemsetAsync(out, 0, 4); wide_sum<<<528, 256>>>(x, n, out); } else serial_sum<<<1, 1>>>(x, n, out);
    float sum; cudaMemcpy(&sum, out, 4, cudaMemcpyDeviceToHost);
  }
  printf("%.2f ms\n", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count());
  return cudaGetLastError();
}
