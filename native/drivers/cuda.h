// The part of the CUDA driver's ABI that the agent uses, declared by us. C11 and C++.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t CudaResult;  // 0 = success
typedef int32_t CudaDevice;
typedef struct CudaContext_st *CudaContext;
typedef struct CudaStream_st *CudaStream;
typedef struct CudaGraph_st *CudaGraph;
typedef struct CudaGraphNode_st *CudaGraphNode;

enum {
  kCudaSuccess = 0,
  kCudaErrorNotInitialized = 3,
  kCudaErrorInvalidContext = 201,
  kCudaErrorNotReady = 600,
  kCudaErrorCaptureImplicit = 906,
};

// Of cuPointerGetAttribute.
enum {
  kCudaPointerContext = 1,
  kCudaPointerDevice = 9,
};

enum { kCudaCaptureModeRelaxed = 2 };
enum { kCudaStreamPerThread = 2 };  // in the place of a stream

// Of cuDeviceGetAttribute.
enum {
  kCudaDevicePciBus = 33,
  kCudaDevicePciDevice = 34,
  kCudaDeviceMemoryClock = 36,  // kHz
  kCudaDevicePciDomain = 50,
};

typedef struct CudaUuid {
  uint8_t bytes[16];
} CudaUuid;

// Found with dlsym under the names behind them; null where this driver lacks one.
typedef struct CudaFunctions {
  CudaResult (*init)(unsigned flags);                                            // cuInit
  CudaResult (*device_get_count)(int *count);                                    // cuDeviceGetCount
  CudaResult (*device_get)(CudaDevice *device, int ordinal);                     // cuDeviceGet
  CudaResult (*device_get_attribute)(int *value, int which, CudaDevice device);  // cuDeviceGetAttribute
} CudaFunctions;

// The same, for reading memory of a device.
typedef struct CudaMemoryFunctions {
  CudaResult (*pointer_get_attribute)(void *value, int which, uint64_t address);  // cuPointerGetAttribute
  CudaResult (*context_get_current)(CudaContext *context);                        // cuCtxGetCurrent
  CudaResult (*context_push)(CudaContext context);                                // cuCtxPushCurrent_v2
  CudaResult (*context_pop)(CudaContext *context);                                // cuCtxPopCurrent_v2
  CudaResult (*primary_retain)(CudaContext *context, CudaDevice device);          // cuDevicePrimaryCtxRetain
  CudaResult (*primary_release)(CudaDevice device);                   // cuDevicePrimaryCtxRelease_v2
  CudaResult (*context_synchronize)(void);                            // cuCtxSynchronize
  CudaResult (*stream_query)(CudaStream stream);                      // cuStreamQuery
  CudaResult (*stream_synchronize)(CudaStream stream);                // cuStreamSynchronize
  CudaResult (*stream_is_capturing)(CudaStream stream, int *status);  // cuStreamIsCapturing
  CudaResult (*exchange_capture_mode)(int *mode);                     // cuThreadExchangeStreamCaptureMode
  CudaResult (*copy_to_host)(void *to, uint64_t from, size_t bytes,
                             CudaStream stream);  // cuMemcpyDtoHAsync_v2
} CudaMemoryFunctions;
