// Reads in-kernel buffers from the GPU or the host.
// CUDA's handles may be gone by then, so the driver is asked for the context of the address first.
#include "memory.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "agent/python/memory/memory.h"
#include "agent/session.h"
#include "drivers/cuda.h"
#include "spool/system/clock.h"

namespace warplens::agent {
namespace {

constexpr long kFirstPauseNs = 20'000;
constexpr long kLongestPauseNs = 1'000'000;

template <typename Function>
void find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
}

// Found once the program has loaded the driver; racing threads find the same.
const CudaMemoryFunctions *driver() {
  static CudaMemoryFunctions functions;
  static std::atomic<bool> found{false};
  if (!found.load(std::memory_order_acquire)) {
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (library == nullptr) {
      return nullptr;
    }
    CudaMemoryFunctions all{};
    find(library, "cuPointerGetAttribute", all.pointer_get_attribute);
    find(library, "cuCtxGetCurrent", all.context_get_current);
    find(library, "cuCtxPushCurrent_v2", all.context_push);
    find(library, "cuCtxPopCurrent_v2", all.context_pop);
    find(library, "cuDevicePrimaryCtxRetain", all.primary_retain);
    find(library, "cuDevicePrimaryCtxRelease_v2", all.primary_release);
    find(library, "cuCtxSynchronize", all.context_synchronize);
    find(library, "cuStreamQuery", all.stream_query);
    find(library, "cuStreamSynchronize", all.stream_synchronize);
    find(library, "cuStreamIsCapturing", all.stream_is_capturing);
    find(library, "cuThreadExchangeStreamCaptureMode", all.exchange_capture_mode);
    find(library, "cuMemcpyDtoHAsync_v2", all.copy_to_host);
    dlclose(library);  // the program has it, too
    functions = all;
    found.store(true, std::memory_order_release);
  }
  const CudaMemoryFunctions &call = functions;
  bool usable = call.pointer_get_attribute != nullptr && call.context_get_current != nullptr &&
                call.context_push != nullptr && call.context_pop != nullptr &&
                call.context_synchronize != nullptr && call.stream_query != nullptr &&
                call.stream_synchronize != nullptr && call.copy_to_host != nullptr;
  return usable ? &functions : nullptr;
}

CudaStream stream_of(uint64_t handle) {
  return reinterpret_cast<CudaStream>(handle);
}

}  // namespace

BufferReader::BufferReader(const BufferPlace &place) : place_(place) {
  if (!place.on_device) {
    error_ = memory_denied();
    return;
  }
  const CudaMemoryFunctions *call = driver();
  CudaContext context = nullptr;
  CudaContext current = nullptr;
  if (call == nullptr) {
    error_ = kCudaErrorNotInitialized;
    return;
  }
  if (failed(call->pointer_get_attribute(&context, kCudaPointerContext, place.address)) ||
      failed(call->context_get_current(&current))) {
    return;
  }
  if (context == nullptr &&
      current == nullptr) {  // memory of pools and of virtual addresses belongs to no context
    context = retain_primary();
  }
  if (context != nullptr && context != current) {
    pushed_ = !failed(call->context_push(context));
  } else if (current == nullptr) {
    error_ = kCudaErrorInvalidContext;
  }
  if (error_ == 0 && call->exchange_capture_mode != nullptr) {
    mode_ = kCudaCaptureModeRelaxed;
    exchanged_ = call->exchange_capture_mode(&mode_) == kCudaSuccess;
  }
}

CudaContext BufferReader::retain_primary() {
  const CudaMemoryFunctions *call = driver();
  int32_t device = device_of(place_.address);
  CudaContext context = nullptr;
  if (device >= 0 && call->primary_retain != nullptr && call->primary_release != nullptr &&
      call->primary_retain(&context, device) == kCudaSuccess) {
    retained_ = device;
  }
  return context;
}

BufferReader::~BufferReader() {
  const CudaMemoryFunctions *call = pushed_ || exchanged_ || retained_ >= 0 ? driver() : nullptr;
  if (call == nullptr) {
    return;
  }
  if (exchanged_) {
    call->exchange_capture_mode(&mode_);
  }
  if (pushed_) {
    CudaContext popped = nullptr;
    call->context_pop(&popped);
  }
  if (retained_ >= 0) {
    call->primary_release(retained_);
  }
}

bool BufferReader::failed(int32_t result) {
  if (result != kCudaSuccess && error_ == 0) {
    error_ = result;
  }
  return result != kCudaSuccess;
}

bool BufferReader::await_stream(uint64_t stream, uint64_t until_ms) {
  if (!place_.on_device) {
    return true;
  }
  timespec pause{0, kFirstPauseNs};
  for (;;) {
    CudaResult result = driver()->stream_query(stream_of(stream));
    if (result != kCudaErrorNotReady) {
      return !failed(result);
    }
    if (clock_ns(CLOCK_MONOTONIC) / 1'000'000 >= until_ms) {
      return false;
    }
    syscall(SYS_nanosleep, &pause, nullptr);  // not usleep: a thread could be cancelled in it
    pause.tv_nsec = std::min(pause.tv_nsec * 2, kLongestPauseNs);
  }
}

bool BufferReader::await_context() {
  return !place_.on_device || !failed(driver()->context_synchronize());
}

bool BufferReader::read(uint64_t offset, void *to, size_t size) {
  uint64_t from = place_.address + offset;
  if (place_.on_device) {
    // Of all streams this one waits for nobody else's capture.
    CudaStream own = stream_of(kCudaStreamPerThread);
    return !failed(driver()->copy_to_host(to, from, size, own)) && !failed(driver()->stream_synchronize(own));
  }
  if (!copy_memory(to, from, size)) {
    error_ = EFAULT;
  }
  return error_ == 0;
}

bool is_capturing(uint64_t stream) {
  const CudaMemoryFunctions *call = driver();
  if (call == nullptr || call->stream_is_capturing == nullptr) {
    return false;
  }
  int status = 0;
  CudaResult result = call->stream_is_capturing(stream_of(stream), &status);
  // The default stream cannot be asked for anything while one that waits for it is captured.
  return result == kCudaErrorCaptureImplicit || (result == kCudaSuccess && status != 0);
}

int32_t device_of(uint64_t address) {
  const CudaMemoryFunctions *call = driver();
  int32_t device = -1;
  bool known =
      call != nullptr && call->pointer_get_attribute(&device, kCudaPointerDevice, address) == kCudaSuccess;
  return known ? device : -1;
}

}  // namespace warplens::agent
