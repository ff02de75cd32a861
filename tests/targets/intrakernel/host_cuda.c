// A libcuda whose device memory is the host's, with what buffers of in-kernel records ask of it. It refuses what has no context.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { kInvalidValue = 1, kInvalidContext = 201, kPrimary = 0x100, kOwn = 0x200 };
static uintptr_t stack[16];
static int depth, primary_uses, allocations, synchronized;

static int lost(void) {
  return depth == 0 || stack[depth - 1] == 0;
}

int cuInit(unsigned flags) {
  return flags ? kInvalidValue : 0;
}
int cuDeviceGetCount(int *count) {
  return *count = 2, 0;
}
int cuDeviceGet(int *device, int ordinal) {
  return *device = ordinal, ordinal < 2 ? 0 : 101;
}
int cuDeviceGetAttribute(int *value, int which, int device) {
  *value = which == 75   ? (device ? 8 : 9)
           : which == 76 ? (device ? 6 : 0)
                         : 0;  // device 0 is a Hopper, 1 an Ampere
  return 0;
}
int cuCtxGetCurrent(void **context) {
  return *context = (void *)(depth ? stack[depth - 1] : 0), 0;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  return primary_uses++, *context = (void *)(uintptr_t)(kPrimary + device), 0;
}
int cuCtxPushCurrent_v2(void *context) {
  return stack[depth++] = (uintptr_t)context, 0;
}
int cuCtxPopCurrent_v2(void **context) {
  return depth == 0 ? kInvalidContext : (*context = (void *)stack[--depth], 0);
}
int cuCtxSynchronize(void) {
  return synchronized++, lost() ? kInvalidContext : 0;
}
int cuPointerGetAttribute(void *data, int which, uint64_t pointer) {
  uint64_t *block = (uint64_t *)pointer;
  if (which == 1)  // managed memory, and that of pools, has no context
    return *(void **)data = 0, 0;
  return *(int *)data = block[-2] == kPrimary + 1, which == 9 ? 0 : kInvalidValue;
}
int cuMemAlloc_v2(uint64_t *pointer, size_t bytes) {
  if (lost() || bytes > (size_t)1 << 30) return lost() ? kInvalidContext : 2;
  uint64_t *block = aligned_alloc(16, (bytes + 16 + 15) / 16 * 16);
  memset(block, 0xAB, bytes + 16);
  block[0] = stack[depth - 1];
  return allocations++, *pointer = (uint64_t)(block + 2), 0;
}
int cuMemFree_v2(uint64_t pointer) {
  return allocations--, lost() ? kInvalidContext : (free((uint64_t *)pointer - 2), 0);
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  return lost() ? kInvalidContext : (memcpy(to, (void *)from, bytes), 0);
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  return lost() ? kInvalidContext : (memcpy((void *)to, from, bytes), 0);
}
int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t bytes) {
  return lost() ? kInvalidContext : (memset((void *)to, value, bytes), 0);
}
static void *last_stream;
int cuMemsetD32Async(uint64_t to, unsigned value, size_t count, void *stream) {
  last_stream = stream;
  for (size_t i = 0; i < count; i++) ((unsigned *)to)[i] = value;
  return lost() ? kInvalidContext : 0;
}
int cuGetErrorName(int status, const char **name) {
  *name = status == 201 ? "CUDA_ERROR_INVALID_CONTEXT" : status == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : 0;
  return *name ? 0 : 1;
}

// What the test asks.
int host_cuda_depth(void) {
  return depth;
}
int host_cuda_allocations(void) {
  return allocations;
}
int host_cuda_synchronized(void) {
  return synchronized;
}
void *host_cuda_stream(void) {
  return last_stream;
}
