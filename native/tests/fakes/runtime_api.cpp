// A small libcudart: each call is one of the runtime API, and makes the driver's calls inside of it.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <map>

#include "fake_cuda.h"
#include "session.h"

using namespace fake;  // NOLINT: this file is nothing but its exports

namespace {

thread_local int t_device = 0;
std::map<const void *, CUfunction> &g_functions = *new std::map<const void *, CUfunction>;
std::mutex &g_functions_lock = *new std::mutex;

// The runtime starts the driver by need, and makes the device's primary context.
int ready() {
  if (!g_initialized.load()) {
    cuInit(0);
  }
  if (g_forked.load()) {
    return 3;
  }
  if (current_context() == nullptr) {
    set_current(primary_context(static_cast<uint32_t>(t_device)));
  }
  return 0;
}

CUfunction function_of(const void *symbol) {
  std::lock_guard hold(g_functions_lock);
  CUfunction &found = g_functions[symbol];
  if (found == nullptr) {
    Dl_info info{};
    bool known = dladdr(symbol, &info) != 0 && info.dli_sname != nullptr;
    cuModuleGetFunction(&found, nullptr, known ? info.dli_sname : "unknown");
  }
  return found;
}

int copy_kind(int kind) {
  return kind == 1 ? 1 : kind == 2 ? 2 : 8;
}

}  // namespace

// Before the call begins, as the runtime does: a call's own time is not the start of the driver.
#define RUNTIME(cbid, name)        \
  if (int no = ready(); no != 0) { \
    return no;                     \
  }                                \
  Call call(kRuntimeApi, cbid, name)

FAKE_EXPORT int cudaFakeRegister(const void *symbol, const char *name) {
  if (int no = ready(); no != 0) {
    return no;
  }
  std::lock_guard hold(g_functions_lock);
  return cuModuleGetFunction(&g_functions[symbol], nullptr, name);
}

FAKE_EXPORT int cudaGetDeviceCount(int *count) {
  if (int no = ready(); no != 0) {
    return no;
  }
  Call call(kRuntimeApi, 3, "cudaGetDeviceCount");
  *count = static_cast<int>(device_count());
  return 0;
}

FAKE_EXPORT int cudaGetLastError() {
  RUNTIME(10, "cudaGetLastError");
  return 0;
}

FAKE_EXPORT int cudaPeekAtLastError() {
  RUNTIME(11, "cudaPeekAtLastError");
  return 0;
}

FAKE_EXPORT int cudaSetDevice(int device) {
  RUNTIME(16, "cudaSetDevice");
  if (device < 0 || static_cast<uint32_t>(device) >= device_count()) {
    return call.give(101);
  }
  t_device = device;
  set_current(primary_context(static_cast<uint32_t>(device)));
  return 0;
}

FAKE_EXPORT int cudaGetDevice(int *device) {
  RUNTIME(17, "cudaGetDevice");
  *device = t_device;
  return 0;
}

FAKE_EXPORT int cudaDeviceSynchronize() {
  RUNTIME(165, "cudaDeviceSynchronize");
  return call.give(cuCtxSynchronize());
}

FAKE_EXPORT int cudaDeviceReset() {
  RUNTIME(164, "cudaDeviceReset");
  return call.give(cuDevicePrimaryCtxReset_v2(t_device));
}

FAKE_EXPORT int cudaMalloc(void **address, size_t bytes) {
  RUNTIME(20, "cudaMalloc");
  return call.give(cuMemAlloc_v2(reinterpret_cast<CUdeviceptr *>(address), bytes));
}

FAKE_EXPORT int cudaFree(void *address) {
  RUNTIME(22, "cudaFree");
  return call.give(address == nullptr ? 0 : cuMemFree_v2(reinterpret_cast<CUdeviceptr>(address)));
}

FAKE_EXPORT int cudaMallocHost(void **pages, size_t bytes) {
  RUNTIME(25, "cudaMallocHost");
  return call.give(cuMemHostAlloc(pages, bytes, 0));
}

FAKE_EXPORT int cudaHostAlloc(void **pages, size_t bytes, unsigned flags) {
  RUNTIME(27, "cudaHostAlloc");
  return call.give(cuMemHostAlloc(pages, bytes, flags));
}

FAKE_EXPORT int cudaFreeHost(void *pages) {
  RUNTIME(26, "cudaFreeHost");
  return call.give(cuMemFreeHost(pages));
}

FAKE_EXPORT int cudaMallocManaged(void **address, size_t bytes, unsigned flags) {
  RUNTIME(206, "cudaMallocManaged");
  return call.give(cuMemAllocManaged(reinterpret_cast<CUdeviceptr *>(address), bytes, flags));
}

FAKE_EXPORT int cudaMallocAsync(void **address, size_t bytes, CUstream stream) {
  RUNTIME(373, "cudaMallocAsync");
  return call.give(cuMemAllocAsync(reinterpret_cast<CUdeviceptr *>(address), bytes, stream));
}

FAKE_EXPORT int cudaFreeAsync(void *address, CUstream stream) {
  RUNTIME(375, "cudaFreeAsync");
  return call.give(cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(address), stream));
}

FAKE_EXPORT int cudaMemPrefetchAsync(const void *address, size_t bytes, int device, CUstream stream) {
  RUNTIME(252, "cudaMemPrefetchAsync");
  return call.give(cuMemPrefetchAsync(reinterpret_cast<CUdeviceptr>(address), bytes, device, stream));
}

FAKE_EXPORT int cudaMemcpy(void *to, const void *from, size_t bytes, int kind) {
  RUNTIME(31, "cudaMemcpy");
  auto target = reinterpret_cast<CUdeviceptr>(to), source = reinterpret_cast<CUdeviceptr>(from);
  switch (copy_kind(kind)) {
    case 1:
      return call.give(cuMemcpyHtoD_v2(target, from, bytes));
    case 2:
      return call.give(cuMemcpyDtoH_v2(to, source, bytes));
    default:
      return call.give(cuMemcpyDtoDAsync_v2(target, source, bytes, nullptr));
  }
}

FAKE_EXPORT int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, CUstream stream) {
  RUNTIME(41, "cudaMemcpyAsync");
  auto target = reinterpret_cast<CUdeviceptr>(to), source = reinterpret_cast<CUdeviceptr>(from);
  switch (copy_kind(kind)) {
    case 1:
      return call.give(cuMemcpyHtoDAsync_v2(target, from, bytes, stream));
    case 2:
      return call.give(cuMemcpyDtoHAsync_v2(to, source, bytes, stream));
    default:
      return call.give(cuMemcpyDtoDAsync_v2(target, source, bytes, stream));
  }
}

FAKE_EXPORT int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                                    CUstream stream) {
  RUNTIME(161, "cudaMemcpyPeerAsync");
  auto *target = reinterpret_cast<CUcontext>(primary_context(static_cast<uint32_t>(to_device)));
  auto *source = reinterpret_cast<CUcontext>(primary_context(static_cast<uint32_t>(from_device)));
  return call.give(cuMemcpyPeerAsync(reinterpret_cast<CUdeviceptr>(to), target,
                                     reinterpret_cast<CUdeviceptr>(from), source, bytes, stream));
}

FAKE_EXPORT int cudaMemset(void *address, int value, size_t bytes) {
  RUNTIME(49, "cudaMemset");
  return call.give(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(address), static_cast<unsigned char>(value),
                                   bytes, nullptr));
}

FAKE_EXPORT int cudaMemsetAsync(void *address, int value, size_t bytes, CUstream stream) {
  RUNTIME(51, "cudaMemsetAsync");
  return call.give(cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(address), static_cast<unsigned char>(value),
                                   bytes, stream));
}

FAKE_EXPORT int cudaStreamCreate(CUstream *stream) {
  RUNTIME(129, "cudaStreamCreate");
  return call.give(cuStreamCreate(stream, 0));
}

FAKE_EXPORT int cudaStreamCreateWithFlags(CUstream *stream, unsigned flags) {
  RUNTIME(198, "cudaStreamCreateWithFlags");
  return call.give(cuStreamCreate(stream, flags));
}

FAKE_EXPORT int cudaStreamDestroy(CUstream stream) {
  RUNTIME(201, "cudaStreamDestroy");
  return call.give(cuStreamDestroy_v2(stream));
}

FAKE_EXPORT int cudaStreamSynchronize(CUstream stream) {
  RUNTIME(131, "cudaStreamSynchronize");
  return call.give(cuStreamSynchronize(stream));
}

FAKE_EXPORT int cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  RUNTIME(147, "cudaStreamWaitEvent");
  return call.give(cuStreamWaitEvent(stream, event, flags));
}

FAKE_EXPORT int cudaStreamIsCapturing(CUstream stream, int *status) {
  RUNTIME(317, "cudaStreamIsCapturing");
  return call.give(cuStreamIsCapturing(stream, status));
}

FAKE_EXPORT int cudaEventCreate(CUevent *event) {
  RUNTIME(133, "cudaEventCreate");
  return call.give(cuEventCreate(event, 0));
}

FAKE_EXPORT int cudaEventCreateWithFlags(CUevent *event, unsigned flags) {
  RUNTIME(134, "cudaEventCreateWithFlags");
  return call.give(cuEventCreate(event, flags));
}

FAKE_EXPORT int cudaEventRecord(CUevent event, CUstream stream) {
  RUNTIME(135, "cudaEventRecord");
  return call.give(cuEventRecord(event, stream));
}

FAKE_EXPORT int cudaEventDestroy(CUevent event) {
  RUNTIME(136, "cudaEventDestroy");
  return call.give(cuEventDestroy_v2(event));
}

FAKE_EXPORT int cudaEventSynchronize(CUevent event) {
  RUNTIME(137, "cudaEventSynchronize");
  return call.give(cuEventSynchronize(event));
}

FAKE_EXPORT int cudaEventQuery(CUevent event) {
  RUNTIME(138, "cudaEventQuery");
  return call.give(cuEventQuery(event));
}

FAKE_EXPORT int cudaLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **arguments, size_t shared,
                                 CUstream stream) {
  if (int no = ready(); no != 0) {
    return no;
  }
  CUfunction function = function_of(symbol);
  Call call(kRuntimeApi, 211, "cudaLaunchKernel", nullptr,
            reinterpret_cast<Function *>(function)->name.c_str());
  return call.give(cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                  static_cast<unsigned>(shared), stream, arguments, nullptr));
}

FAKE_EXPORT int cudaStreamBeginCapture(CUstream stream, int mode) {
  RUNTIME(315, "cudaStreamBeginCapture");
  return call.give(cuStreamBeginCapture_v2(stream, mode));
}

FAKE_EXPORT int cudaStreamEndCapture(CUstream stream, CUgraph *graph) {
  RUNTIME(319, "cudaStreamEndCapture");
  return call.give(cuStreamEndCapture(stream, graph));
}

FAKE_EXPORT int cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  RUNTIME(310, "cudaGraphInstantiate");
  return call.give(cuGraphInstantiateWithFlags(exec, graph, flags));
}

FAKE_EXPORT int cudaGraphLaunch(CUgraphExec exec, CUstream stream) {
  RUNTIME(311, "cudaGraphLaunch");
  return call.give(cuGraphLaunch(exec, stream));
}

FAKE_EXPORT int cudaGraphExecDestroy(CUgraphExec exec) {
  RUNTIME(313, "cudaGraphExecDestroy");
  return call.give(cuGraphExecDestroy(exec));
}

FAKE_EXPORT int cudaGraphDestroy(CUgraph graph) {
  RUNTIME(314, "cudaGraphDestroy");
  return call.give(cuGraphDestroy(graph));
}

FAKE_EXPORT int cudaProfilerStart() {
  RUNTIME(171, "cudaProfilerStart");
  return call.give(cuProfilerStart());
}

FAKE_EXPORT int cudaProfilerStop() {
  RUNTIME(172, "cudaProfilerStop");
  return call.give(cuProfilerStop());
}
