// The numbers of the API functions that the fake has, and the names that cuptiGetCallbackName gives them.
#include <cstdio>

#include "fake.h"

namespace fake {
namespace {
struct Name {
  uint32_t id;
  const char *name;
};
constexpr Name kDriverNames[] = {
    {1, "cuInit"},
    {2, "cuDriverGetVersion"},
    {3, "cuDeviceGet"},
    {4, "cuDeviceGetCount"},
    {5, "cuDeviceGetName"},
    {9, "cuDeviceGetAttribute"},
    {16, "cuCtxGetDevice"},
    {17, "cuCtxSynchronize"},
    {19, "cuModuleLoadData"},
    {20, "cuModuleLoadDataEx"},
    {22, "cuModuleUnload"},
    {23, "cuModuleGetFunction"},
    {38, "cuMemFreeHost"},
    {39, "cuMemHostAlloc"},
    {118, "cuEventCreate"},
    {119, "cuEventRecord"},
    {120, "cuEventQuery"},
    {121, "cuEventSynchronize"},
    {124, "cuStreamCreate"},
    {126, "cuStreamSynchronize"},
    {216, "cuMemsetD8Async"},
    {220, "cuMemsetD32Async"},
    {235, "cuCtxCreate_v2"},
    {243, "cuMemAlloc_v2"},
    {245, "cuMemFree_v2"},
    {276, "cuMemcpyHtoD_v2"},
    {277, "cuMemcpyHtoDAsync_v2"},
    {278, "cuMemcpyDtoH_v2"},
    {279, "cuMemcpyDtoHAsync_v2"},
    {281, "cuMemcpyDtoDAsync_v2"},
    {295, "cuStreamWaitEvent"},
    {303, "cuCtxSetCurrent"},
    {304, "cuCtxGetCurrent"},
    {307, "cuLaunchKernel"},
    {308, "cuProfilerStart"},
    {309, "cuProfilerStop"},
    {310, "cuPointerGetAttribute"},
    {319, "cuMemcpyPeerAsync"},
    {322, "cuCtxDestroy_v2"},
    {325, "cuEventDestroy_v2"},
    {326, "cuStreamDestroy_v2"},
    {367, "cuStreamCreateWithPriority"},
    {371, "cuMemAllocManaged"},
    {386, "cuDevicePrimaryCtxRetain"},
    {392, "cuDevicePrimaryCtxGetState"},
    {467, "cuMemPrefetchAsync"},
    {497, "cuStreamEndCapture"},
    {499, "cuStreamIsCapturing"},
    {514, "cuGraphLaunch"},
    {516, "cuGraphExecDestroy"},
    {517, "cuGraphDestroy"},
    {539, "cuStreamBeginCapture_v2"},
    {544, "cuDevicePrimaryCtxRelease_v2"},
    {545, "cuDevicePrimaryCtxReset_v2"},
    {598, "cuMemAllocAsync"},
    {600, "cuMemFreeAsync"},
    {602, "cuMemPoolTrimTo"},
    {607, "cuMemPoolCreate"},
    {608, "cuMemPoolDestroy"},
    {643, "cuGraphInstantiateWithFlags"},
    {652, "cuLaunchKernelEx"},
};
constexpr Name kRuntimeNames[] = {
    {3, "cudaGetDeviceCount_v3020"},
    {10, "cudaGetLastError_v3020"},
    {11, "cudaPeekAtLastError_v3020"},
    {16, "cudaSetDevice_v3020"},
    {17, "cudaGetDevice_v3020"},
    {20, "cudaMalloc_v3020"},
    {22, "cudaFree_v3020"},
    {25, "cudaMallocHost_v3020"},
    {26, "cudaFreeHost_v3020"},
    {27, "cudaHostAlloc_v3020"},
    {31, "cudaMemcpy_v3020"},
    {41, "cudaMemcpyAsync_v3020"},
    {49, "cudaMemset_v3020"},
    {51, "cudaMemsetAsync_v3020"},
    {129, "cudaStreamCreate_v3020"},
    {131, "cudaStreamSynchronize_v3020"},
    {133, "cudaEventCreate_v3020"},
    {134, "cudaEventCreateWithFlags_v3020"},
    {135, "cudaEventRecord_v3020"},
    {136, "cudaEventDestroy_v3020"},
    {137, "cudaEventSynchronize_v3020"},
    {138, "cudaEventQuery_v3020"},
    {139, "cudaEventElapsedTime_v3020"},
    {147, "cudaStreamWaitEvent_v3020"},
    {151, "cudaPointerGetAttributes_v4000"},
    {161, "cudaMemcpyPeerAsync_v4000"},
    {164, "cudaDeviceReset_v3020"},
    {165, "cudaDeviceSynchronize_v3020"},
    {171, "cudaProfilerStart_v4000"},
    {172, "cudaProfilerStop_v4000"},
    {198, "cudaStreamCreateWithFlags_v5000"},
    {201, "cudaStreamDestroy_v5050"},
    {206, "cudaMallocManaged_v6000"},
    {211, "cudaLaunchKernel_v7000"},
    {252, "cudaMemPrefetchAsync_v8000"},
    {311, "cudaGraphLaunch_v10000"},
    {313, "cudaGraphExecDestroy_v10000"},
    {314, "cudaGraphDestroy_v10000"},
    {315, "cudaStreamBeginCapture_v10000"},
    {317, "cudaStreamIsCapturing_v10000"},
    {319, "cudaStreamEndCapture_v10000"},
    {310, "cudaGraphInstantiate_v10000"},
    {373, "cudaMallocAsync_v11020"},
    {375, "cudaFreeAsync_v11020"},
    {377, "cudaMemPoolTrimTo_v11020"},
    {383, "cudaMemPoolCreate_v11020"},
    {384, "cudaMemPoolDestroy_v11020"},
    {430, "cudaLaunchKernelExC_v11060"},
};

// Every number has a name in the real library: those of functions that the fake lacks are made up.
const char *made_up(uint32_t domain, uint32_t cbid) {
  static char names[2][1024][32];
  char *name = names[domain - 1][cbid];
  std::snprintf(name, sizeof(names[0][0]), domain == kDriverApi ? "cuUnheardOf%u" : "cudaUnheardOf%u_v3020",
                cbid);
  return name;
}

uint32_t name_count(uint32_t domain) {
  bool driver = domain == kDriverApi;
  switch (kVersion.toolkit) {
    case 1108:
      return driver ? 677 : 434;
    case 1204:
      return driver ? 754 : 468;
    case 1300:
      return driver ? 807 : 523;
    default:
      return driver ? 868 : 566;
  }
}

}  // namespace

const char *callback_name(uint32_t domain, uint32_t cbid) {
  if ((domain != kDriverApi && domain != kRuntimeApi) || cbid == 0 || cbid >= name_count(domain)) {
    return nullptr;
  }
  if (domain == kDriverApi) {
    for (const Name &name : kDriverNames) {
      if (name.id == cbid) {
        return name.name;
      }
    }
  } else if (domain == kRuntimeApi) {
    for (const Name &name : kRuntimeNames) {
      if (name.id == cbid) {
        return name.name;
      }
    }
  }
  return made_up(domain, cbid);
}

}  // namespace fake
