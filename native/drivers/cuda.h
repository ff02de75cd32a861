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
  kCudaErrorDeinitialized = 4,
};

// Of cuDeviceGetAttribute.
enum {
  kCudaDeviceClock = 13,  // kHz
  kCudaDeviceMultiprocessors = 16,
  kCudaDevicePciBus = 33,
  kCudaDevicePciDevice = 34,
  kCudaDeviceMemoryClock = 36,  // kHz
  kCudaDeviceMemoryBusWidth = 37,
  kCudaDeviceL2Size = 38,
  kCudaDevicePciDomain = 50,
  kCudaDeviceMajor = 75,
  kCudaDeviceMinor = 76,
};

typedef struct CudaUuid {
  uint8_t bytes[16];
} CudaUuid;

// Found with dlsym under the names behind them; null where this driver lacks one.
typedef struct CudaFunctions {
  CudaResult (*init)(unsigned flags);                                      // cuInit
  CudaResult (*driver_get_version)(int *version);                          // cuDriverGetVersion
  CudaResult (*device_get_count)(int *count);                              // cuDeviceGetCount
  CudaResult (*device_get)(CudaDevice *device, int ordinal);               // cuDeviceGet
  CudaResult (*device_get_name)(char *name, int size, CudaDevice device);  // cuDeviceGetName
  CudaResult (*device_get_uuid)(CudaUuid *uuid, CudaDevice device);  // cuDeviceGetUuid_v2, cuDeviceGetUuid
  CudaResult (*device_total_mem)(size_t *bytes, CudaDevice device);  // cuDeviceTotalMem_v2
  CudaResult (*device_get_attribute)(int *value, int which, CudaDevice device);  // cuDeviceGetAttribute
  CudaResult (*ctx_get_current)(CudaContext *context);                           // cuCtxGetCurrent
  CudaResult (*ctx_get_device)(CudaDevice *device);                              // cuCtxGetDevice
  // cuDevicePrimaryCtxGetState: whether the device's primary context exists, which says that the program has begun to use it
  CudaResult (*device_primary_ctx_get_state)(CudaDevice device, unsigned *flags, int *active);
} CudaFunctions;

// What the driver looks for in the library that CUDA_INJECTION64_PATH names, and calls in cuInit. Returns 1.
typedef int (*CudaInitializeInjection)(void);
