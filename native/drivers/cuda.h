// The little of the CUDA driver's ABI that we use: numbers and signatures, declared by ourselves. C11 and C++.
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef int32_t CudaResult;  // 0 = success
typedef int32_t CudaDevice;
typedef struct CudaContext_st *CudaContext;
typedef struct CudaStream_st *CudaStream;

enum {
  kCudaSuccess = 0,
  kCudaErrorNotInitialized = 3,
};

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
