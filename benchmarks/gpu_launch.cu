// What a launch costs the thread that makes it: empty kernels, and replays of a graph of 100 of them. Prints a line of JSON.
#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace {

__global__ void nothing() {}

void must(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "gpu_launch: %s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

// An idle GPU has a low clock; it takes a while to rise.
__global__ void spin(long long cycles) {
  for (long long begin = clock64(); clock64() - begin < cycles;) {
  }
}

void warm_up(double seconds) {
  auto begin = std::chrono::steady_clock::now();
  while (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < seconds) {
    spin<<<1000, 128>>>(100'000);
    must(cudaDeviceSynchronize());
  }
}

// Nanoseconds per call of `work`, with a wait after every 1000: the best of `rounds`, so that what else the machine does counts least.
template <typename Work>
double best(int rounds, int calls, Work work) {
  double found = 1e18;
  for (int round = 0; round <= rounds; ++round) {
    auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) {
      work();
      if (call % 1000 == 999) {
        must(cudaDeviceSynchronize());
      }
    }
    must(cudaDeviceSynchronize());
    double took = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / calls;
    found = round != 0 && took < found ? took : found;  // the first one warms up
  }
  return found;
}

}  // namespace

int main(int count, char **words) {
  int rounds = count > 1 ? std::atoi(words[1]) : 5;
  warm_up(1.0);
  cudaStream_t stream;
  must(cudaStreamCreate(&stream));
  double launch = best(rounds, 20'000, [&] { nothing<<<1, 32, 0, stream>>>(); });
  cudaGraph_t graph;
  cudaGraphExec_t runnable;
  must(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int node = 0; node < 100; ++node) {
    nothing<<<1, 32, 0, stream>>>();
  }
  must(cudaStreamEndCapture(stream, &graph));
  must(cudaGraphInstantiate(&runnable, graph, 0));
  double replay = best(rounds, 200, [&] { must(cudaGraphLaunch(runnable, stream)); });
  std::printf("{\"launch\": %.1f, \"replay\": %.1f}\n", launch, replay);
}
