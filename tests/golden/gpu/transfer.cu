// A C++ program with several planted mistakes: one block, pageable copies in small pieces, managed memory touched in turn.
#include <cstdio>
#include <vector>
#include <chrono>
__global__ void serial_sum(const float* x, int n, float* out) { float s = 0; for (int i = 0; i < n; ++i) s += x[i]; *out = s; }
__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 1.0001f; }
int main() {
  const int n = 1 << 20;
  std::vector<float> host(n, 1.0f);
  float *x, *out, *managed;
  cudaMalloc(&x, n * 4); cudaMalloc(&out, 4); cudaMallocManaged(&managed, n * 16);
  for (int i = 0; i < 4 * n; ++i) managed[i] = 1;
  for (int step = 0; step < 5; ++step) {
    for (int piece = 0; piece < 64; ++piece) cudaMemcpyAsync(x + piece * (n / 64), host.data() + piece * (n / 64), n / 64 * 4, cudaMemcpyHostToDevice, 0);
    serial_sum<<<1, 1>>>(x, n, out);
    scale<<<4 * n / 256, 256>>>(managed, 4 * n);
    cudaDeviceSynchronize();
    for (int i = 0; i < 4 * n; i += 1024) managed[i] += 1;
    float sum; cudaMemcpy(&sum, out, 4, cudaMemcpyDeviceToHost);
    if (step == 0) printf("%f\n", sum);
  }
  return cudaGetLastError();
}
