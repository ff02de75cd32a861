/* What programs see of the look-alike libcuda and libcudart, with the real functions' signatures. C11 and C++. */
#ifndef WARPLENS_FAKE_CUDA_H
#define WARPLENS_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct dim3 {
  unsigned x, y, z;
} dim3;

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuDeviceGetCount(int *count);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxRetain(CUcontext *context, int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuCtxCreate_v2(CUcontext *context, unsigned flags, int device);
int cuCtxDestroy_v2(CUcontext context);
int cuCtxSetCurrent(CUcontext context);
int cuCtxGetCurrent(CUcontext *context);
int cuCtxSynchronize(void);
int cuModuleLoadData(CUmodule *module, const void *image);
int cuModuleUnload(CUmodule module);
/* "name@ns": a kernel that takes that long; 5000 ns without. */
int cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
int cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **arguments,
                   void **extra);
int cuStreamCreate(CUstream *stream, unsigned flags);
int cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority);
int cuStreamDestroy_v2(CUstream stream);
int cuStreamSynchronize(CUstream stream);
int cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
int cuStreamBeginCapture_v2(CUstream stream, int mode);
int cuStreamEndCapture(CUstream stream, CUgraph *graph);
int cuStreamIsCapturing(CUstream stream, int *status);
int cuEventCreate(CUevent *event, unsigned flags);
int cuEventDestroy_v2(CUevent event);
int cuEventRecord(CUevent event, CUstream stream);
int cuEventQuery(CUevent event);
int cuEventSynchronize(CUevent event);
int cuGraphClone(CUgraph *clone, CUgraph graph);
int cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
int cuGraphLaunch(CUgraphExec exec, CUstream stream);
int cuGraphExecDestroy(CUgraphExec exec);
int cuGraphDestroy(CUgraph graph);
int cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
int cuMemFree_v2(CUdeviceptr address);
int cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned flags);
int cuMemHostAlloc(void **pages, size_t bytes, unsigned flags);
int cuMemFreeHost(void *pages);
int cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream stream);
int cuMemFreeAsync(CUdeviceptr address, CUstream stream);
int cuMemPoolCreate(CUmemoryPool *pool, const void *properties);
int cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes);
int cuMemPoolDestroy(CUmemoryPool pool);
int cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, int device, CUstream stream);
int cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream);
int cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      size_t bytes, CUstream stream);
int cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t count, CUstream stream);
int cuMemsetD32Async(CUdeviceptr address, unsigned value, size_t count, CUstream stream);
int cuProfilerStart(void);
int cuProfilerStop(void);

/* No function of CUDA: what a compiler's start-up code does. */
int cudaFakeRegister(const void *symbol, const char *name);
int cudaGetDeviceCount(int *count);
int cudaGetLastError(void);
int cudaSetDevice(int device);
int cudaGetDevice(int *device);
int cudaDeviceSynchronize(void);
int cudaDeviceReset(void);
int cudaMalloc(void **address, size_t bytes);
int cudaFree(void *address);
int cudaMallocHost(void **pages, size_t bytes);
int cudaFreeHost(void *pages);
int cudaMallocManaged(void **address, size_t bytes, unsigned flags);
int cudaMallocAsync(void **address, size_t bytes, CUstream stream);
int cudaFreeAsync(void *address, CUstream stream);
int cudaMemPrefetchAsync(const void *address, size_t bytes, int device, CUstream stream);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, CUstream stream);
int cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device, size_t bytes,
                        CUstream stream);
int cudaMemset(void *address, int value, size_t bytes);
int cudaMemsetAsync(void *address, int value, size_t bytes, CUstream stream);
int cudaStreamCreate(CUstream *stream);
int cudaStreamCreateWithFlags(CUstream *stream, unsigned flags);
int cudaStreamDestroy(CUstream stream);
int cudaStreamSynchronize(CUstream stream);
int cudaStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
int cudaStreamBeginCapture(CUstream stream, int mode);
int cudaStreamEndCapture(CUstream stream, CUgraph *graph);
int cudaStreamIsCapturing(CUstream stream, int *status);
int cudaEventCreate(CUevent *event);
int cudaEventDestroy(CUevent event);
int cudaEventRecord(CUevent event, CUstream stream);
int cudaEventQuery(CUevent event);
int cudaEventSynchronize(CUevent event);
int cudaGraphInstantiate(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
int cudaGraphLaunch(CUgraphExec exec, CUstream stream);
int cudaGraphExecDestroy(CUgraphExec exec);
int cudaGraphDestroy(CUgraph graph);
int cudaLaunchKernel(const void *symbol, dim3 grid, dim3 block, void **arguments, size_t shared,
                     CUstream stream);
int cudaProfilerStart(void);
int cudaProfilerStop(void);

/* CUPTI's: frameworks say which API calls belong to which of their operations. */
int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id);
int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t *id);

#ifdef __cplusplus
}
#endif

#endif
