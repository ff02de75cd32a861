// Host and GPU touch managed memory in turn: its pages travel in faults. --fix keeps it on the GPU and copies what the host needs.
#include <cstdio>
#include <cstring>
#include <chrono>
__global__ void scale(float* x, int n) { for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) x[i] *= 1.0001f; }
int main(int argc, char** argv) {
  bool fix = argc > 1 && !strcmp(argv[1], "--fix");
  const int n = 1 << 24;
  float *x, *host;
  if (fix) { cudaMalloc(&x, n * 4); cudaMallocHost(&host, n * 4); } else { cudaMallocManaged(&x, n * 4); host = x; }
  for (int i = 0; i < n; ++i) host[i] = 1;
  cudaDeviceSynchronize();
  auto t = std::chrono::steady_clock::now();
  for (int step = 0; step < 12; ++step) {
    if (fix) cudaMemcpyAsync(x, host, n * 4, cudaMemcpyHostToDevice);
    for (int k = 0; k < 10; ++k) scale<<<528, 256>>>(x, n);
    if (fix) cudaMemcpyAsync(host, x, n * 4, cudaMemcpyDeviceToHost);
    cudaDeviceSynchronize();
    for (int i = 0; i < n; i += 64) host[i] += 1;
  }
  printf("%.2f ms\n", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - t).count());
  return cudaGetLastError();
}
