// The dispatcher's parts that need no CUPTI: buffers, which calls count, versions in file names.
#include <sys/resource.h>

#include <cstring>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "agent/hooks/cupti/buffers.h"
#include "agent/hooks/cupti/calls.h"
#include "agent/hooks/cupti/cupti.h"
#include "agent/hooks/cupti/library.h"
#include "tests/check.h"

namespace warplens::agent {
const char *cupti_callback_name(const Cupti &, CuptiDomain, uint32_t) {
  return nullptr;
}
}  // namespace warplens::agent

using namespace warplens::agent;

namespace {

bool all_zero(const uint8_t *buffer, size_t size) {
  return buffer[0] == 0 && std::memcmp(buffer, buffer + 1, size - 1) == 0;
}

void buffers_come_back_empty() {
  auto buffers = std::make_unique<CuptiBuffers>();
  for (size_t used : {size_t{0}, size_t{1}, size_t{5000}, CuptiBuffers::kSize}) {
    uint8_t *buffer = buffers->take();
    CHECK(buffers->taken() == 1);
    CHECK(all_zero(buffer, CuptiBuffers::kSize));
    std::memset(buffer, 0xff, CuptiBuffers::kSize);  // CUPTI may have begun more than it says
    CHECK(buffers->claim(buffer) && !buffers->claim(buffer));
    CHECK(buffers->take() != buffer);  // it is in use until it is given back
    buffers->give_back(buffer, used);
    CHECK(!buffers->claim(buffer) && buffers->taken() == 1);
    buffers = std::make_unique<CuptiBuffers>();
    CHECK(all_zero(buffer, CuptiBuffers::kSize));
  }
}

void buffers_belong_to_one_at_a_time() {
  auto buffers = std::make_unique<CuptiBuffers>();
  std::vector<std::thread> threads;
  std::atomic<uint32_t> wrong{0};
  for (uint8_t number = 1; number <= 4; ++number) {
    threads.emplace_back([&buffers, &wrong, number] {
      for (int round = 0; round < 200; ++round) {
        uint8_t *buffer = buffers->take();
        wrong += buffer[0] != 0 ? 1 : 0;
        std::memset(buffer, number, 64);
        std::this_thread::yield();
        wrong += buffer[63] != number ? 1 : 0;
        wrong += buffers->claim(buffer) ? 0 : 1;
        buffers->give_back(buffer, 64);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
  CHECK(buffers->taken() == 0);
  uint8_t stranger[64] = {};
  bool alone = false;
  CHECK(!buffers->claim(stranger) && !buffers->is_discard(stranger, &alone));
}

// Whatever was refused is no loss for later.
void buffers_come_when_memory_does() {
  auto buffers = std::make_unique<CuptiBuffers>();
  rlimit before{};
  CHECK(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit little{0, before.rlim_max};
  CHECK(setrlimit(RLIMIT_AS, &little) == 0);
  uint32_t refused = 0;
  for (int i = 0; i < 5000; ++i) {  // more often than there are buffers; the heap may still have some
    refused += buffers->take() == nullptr ? 1 : 0;
  }
  CHECK(setrlimit(RLIMIT_AS, &before) == 0);
  CHECK(refused > 4900);
  CHECK(buffers->take() != nullptr);
}

void what_is_thrown_away_has_a_place() {
  auto buffers = std::make_unique<CuptiBuffers>();
  std::set<uint8_t *> places;
  std::vector<uint8_t *> taken;
  uint32_t shared = 0;
  for (int i = 0; i < 12; ++i) {
    taken.push_back(buffers->take_discard());
    places.insert(taken.back());
    bool alone = false;
    CHECK(buffers->is_discard(taken.back(), &alone));
    shared += alone ? 0 : 1;
  }
  CHECK(places.size() == 8 && shared == 5);
  for (uint8_t *buffer : taken) {
    buffers->give_back_discard(buffer);
  }
  CHECK(places.count(buffers->take_discard()) == 1);
}

void calls_that_do_something_count() {
  for (const char *name :
       {"cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaMalloc_v3020", "cudaStreamSynchronize_v3020",
        "cudaEventQuery_v3020", "cudaMemGetInfo_v3020", "cudaGetDeviceProperties_v2_v12000",
        "cudaGraphInstantiate_v12000", "cudaSetDevice_v3020", "cudaFuncSetAttribute_v9000"}) {
    CHECK(is_worth_recording(kCuptiRuntimeApi, name));
  }
  for (const char *name :
       {"cudaGetLastError_v3020", "cudaPeekAtLastError_v3020", "cudaGetDevice_v3020",
        "cudaDeviceGetAttribute_v5000", "cudaStreamIsCapturing_v10000", "cudaPointerGetAttributes_v4000",
        "cudaOccupancyMaxActiveBlocksPerMultiprocessor_v6050", "cudaFuncGetAttributes_v3020",
        "__cudaPushCallConfiguration_v7000", "cudaStreamGetCaptureInfo_v3_v12030"}) {
    CHECK(!is_worth_recording(kCuptiRuntimeApi, name));
  }
  for (const char *name : {"cuLaunchKernel", "cuLaunchKernelEx_ptsz", "cuGraphLaunch", "cuMemcpyHtoDAsync_v2",
                           "cuCtxSynchronize", "cuModuleLoadData", "cuMemAllocAsync", "cuInit"}) {
    CHECK(is_worth_recording(kCuptiDriverApi, name));
  }
  for (const char *name : {"cuCtxGetCurrent", "cuPointerGetAttribute", "cuDevicePrimaryCtxGetState",
                           "cuKernelGetAttribute", "cuGetProcAddress_v2", "cuCtxPushCurrent_v2"}) {
    CHECK(!is_worth_recording(kCuptiDriverApi, name));
  }
}

void names_say_versions() {
  CHECK(cupti_major_of("/a/libcupti.so.13") == 13);
  CHECK(cupti_major_of("libcupti.so.11.8") == 11);
  CHECK(cupti_major_of("/a.so.9/libcupti.so") == 0);
  CHECK(cupti_major_of("/a/libcupti.so.2025.3.1") == 0);
  CHECK(cupti_major_of("/torch/lib/libcupti-753dbbdf.so.12") == 12);
  CHECK(!is_driver_started() || is_driver_loaded());
}

}  // namespace

int main() {
  buffers_come_back_empty();
  buffers_belong_to_one_at_a_time();
  buffers_come_when_memory_does();
  what_is_thrown_away_has_a_place();
  calls_that_do_something_count();
  names_say_versions();
  std::printf("%d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
