// libcuda's entry points: starting, contexts, streams, events, launches, copies.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "session.h"

using namespace fake;  // NOLINT: this file is nothing but its exports

FAKE_EXPORT int cuCtxDestroy_v2(Context *context);

namespace {

void forked() {
  if (g_initialized.load()) {
    g_forked = true;
  }
}

// As the driver does it: in the first cuInit, before anything else of CUDA happens.
void inject() {
  const char *path = setting("CUDA_INJECTION64_PATH");
  if (*path == 0 || std::strcmp(path, "none") == 0) {
    return;
  }
  void *library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    note("injection failed: %s", dlerror());
    return;
  }
  auto initialize = reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"));
  int result = initialize == nullptr ? -1 : initialize();
  note("injection %s returned %d", path, result);
}

// A process ends, and CUPTI's own thread still hands out buffers and takes new ones, and contexts are destroyed.
void go_on_at_exit() {
  note("CUPTI goes on at exit");
  for (Context *context : std::vector<Context *>(contexts())) {
    cuCtxDestroy_v2(context);
  }
  for (int round = 0; round < 3; ++round) {
    for (uint32_t index = 0; index < kSessions; ++index) {
      on_worker([index] {
        put(session(index), Record(kContext));
        close_buffers(session(index), false);
        give_back_buffers(session(index), true);
      });
    }
  }
}

Context *context_here() {
  return stream_of(nullptr)->context;
}

}  // namespace

FAKE_EXPORT int cuInit(unsigned) {
  if (g_forked.load()) {
    return 3;
  }
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  static bool injected = false;
  if (!injected) {
    injected = true;
    pthread_atfork(nullptr, nullptr, forked);
    g_initialized = true;
    g_initializing = true;
    if (trap("exit-callbacks") != 0) {
      std::atexit(go_on_at_exit);  // before the tool's handler, so it runs after that
    }
    inject();
    if (uint64_t slow = trap("slow-init"); slow != 0) {
      deliver(Record(kOverhead));
      usleep(static_cast<useconds_t>(slow * 1000));
    }
    g_initializing = false;
    play_script();
  }
  pthread_mutex_unlock(&lock);
  Call call(kDriverApi, 1, "cuInit");
  return call.give(0);
}

FAKE_EXPORT int cuDriverGetVersion(int *version) {
  const char *text = setting("FAKE_CUDA_DRIVER");
  *version = *text != 0 ? std::atoi(text) : static_cast<int>(kVersion.driver);
  return 0;
}

FAKE_EXPORT int cuDeviceGetCount(int *count) {
  USABLE();
  Call call(kDriverApi, 4, "cuDeviceGetCount");
  *count = static_cast<int>(device_count());
  return 0;
}

FAKE_EXPORT int cuDeviceGet(int *device, int ordinal) {
  USABLE();
  Call call(kDriverApi, 3, "cuDeviceGet");
  *device = ordinal;
  return call.give(ordinal < 0 || static_cast<uint32_t>(ordinal) >= device_count() ? 101 : 0);
}

FAKE_EXPORT int cuDeviceGetName(char *name, int size, int device) {
  USABLE();
  Call call(kDriverApi, 5, "cuDeviceGetName");
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU %u", gpu_of(static_cast<uint32_t>(device)));
  return 0;
}

FAKE_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device) {
  USABLE();
  Call call(kDriverApi, 9, "cuDeviceGetAttribute");
  const int bus = 33;  // where it is on the PCI bus
  *value = attribute == 75    ? 9
           : attribute == 16  ? 132
           : attribute == 1   ? 1024
           : attribute == bus ? 0x17 + static_cast<int>(gpu_of(static_cast<uint32_t>(device)))
                              : 0;
  return 0;
}

FAKE_EXPORT int cuDeviceGetUuid_v2(unsigned char *uuid, int device) {
  USABLE();
  for (int byte = 0; byte < 16; ++byte) {
    uuid[byte] = static_cast<unsigned char>(0xa0 + 16 * gpu_of(static_cast<uint32_t>(device)) +
                                            static_cast<uint32_t>(byte));
  }
  return 0;
}

FAKE_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  USABLE();
  *bytes = 151'000'000'000u + static_cast<size_t>(device);
  return 0;
}

FAKE_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
  USABLE();
  Call call(kDriverApi, 392, "cuDevicePrimaryCtxGetState");
  *flags = 0;
  *active = has_primary(static_cast<uint32_t>(device)) ? 1 : 0;
  return 0;
}

FAKE_EXPORT int cuDevicePrimaryCtxRetain(Context **context, int device) {
  USABLE();
  Call call(kDriverApi, 386, "cuDevicePrimaryCtxRetain");
  *context = primary_context(static_cast<uint32_t>(device));
  return 0;
}

FAKE_EXPORT int cuDevicePrimaryCtxRelease_v2(int) {
  USABLE();
  Call call(kDriverApi, 544, "cuDevicePrimaryCtxRelease_v2");
  return 0;
}

FAKE_EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
  USABLE();
  Call call(kDriverApi, 545, "cuDevicePrimaryCtxReset_v2");
  reset_device(static_cast<uint32_t>(device));
  if (is_backed()) {
    forget_device_memory();
  }
  return 0;
}

FAKE_EXPORT int cuCtxCreate_v2(Context **context, unsigned, int device) {
  USABLE();
  Call call(kDriverApi, 235, "cuCtxCreate_v2");
  set_current(*context = make_context(static_cast<uint32_t>(device)));
  return 0;
}

FAKE_EXPORT int cuCtxDestroy_v2(Context *context) {
  USABLE();
  Call call(kDriverApi, 322, "cuCtxDestroy_v2");
  destroy_context(context);
  return 0;
}

FAKE_EXPORT int cuCtxSetCurrent(Context *context) {
  USABLE();
  Call call(kDriverApi, 303, "cuCtxSetCurrent");
  set_current(context);
  return 0;
}

// The agent may ask for it from anywhere.
FAKE_EXPORT int cuCtxGetCurrent(Context **context) {
  USABLE();
  Call call(kDriverApi, 304, "cuCtxGetCurrent");
  *context = current_context();
  return 0;
}

FAKE_EXPORT int cuCtxGetDevice(int *device) {
  USABLE();
  Call call(kDriverApi, 16, "cuCtxGetDevice");
  Context *context = current_context();
  if (context == nullptr) {
    return call.give(201);
  }
  *device = static_cast<int>(context->device);
  return 0;
}

FAKE_EXPORT int cuCtxSynchronize() {
  USABLE();
  Call call(kDriverApi, 17, "cuCtxSynchronize");
  uint64_t start = cupti_now();
  Context *context = context_here();
  wait_context(context);
  record_sync(4, start, call.correlation(), context, 0xffffffff, nullptr);
  return 0;
}

FAKE_EXPORT int cuStreamCreate(Stream **stream, unsigned flags) {
  USABLE();
  Call call(kDriverApi, 124, "cuStreamCreate");
  *stream = make_stream(context_here(), flags, 0);
  return 0;
}

FAKE_EXPORT int cuStreamCreateWithPriority(Stream **stream, unsigned flags, int priority) {
  USABLE();
  Call call(kDriverApi, 367, "cuStreamCreateWithPriority");
  *stream = make_stream(context_here(), flags, static_cast<uint32_t>(priority));
  return 0;
}

FAKE_EXPORT int cuStreamDestroy_v2(Stream *stream) {
  USABLE();
  Call call(kDriverApi, 326, "cuStreamDestroy_v2");
  destroy_stream(stream);
  return 0;
}

FAKE_EXPORT int cuStreamSynchronize(void *handle) {
  USABLE();
  Call call(kDriverApi, 126, "cuStreamSynchronize");
  uint64_t start = cupti_now();
  Stream *stream = stream_of(handle);
  wait_stream(stream);
  record_sync(3, start, call.correlation(), stream->context, stream->id, nullptr);
  return 0;
}

FAKE_EXPORT int cuEventCreate(Event **event, unsigned) {
  USABLE();
  Call call(kDriverApi, 118, "cuEventCreate");
  static std::atomic<uint32_t> next{1};
  *event = new Event{next.fetch_add(1), nullptr, 0, 0};
  return 0;
}

FAKE_EXPORT int cuEventDestroy_v2(Event *event) {
  USABLE();
  Call call(kDriverApi, 325, "cuEventDestroy_v2");
  delete event;
  return 0;
}

FAKE_EXPORT int cuEventRecord(Event *event, void *handle) {
  USABLE();
  Call call(kDriverApi, 119, "cuEventRecord");
  static std::atomic<uint64_t> next{1};
  Stream *stream = stream_of(handle);
  event->stream = stream;
  event->done = enqueue(stream, 0, 500);
  event->sync = next.fetch_add(1);
  truth(R"({"what": "event", "pid": %d, "event": %u, "correlation": %u, "stream": %u})", getpid(), event->id,
        call.correlation(), stream->id);
  Record record(kCudaEvent);
  record.put<uint32_t>(4, call.correlation());
  record.put<uint32_t>(8, stream->context->id);
  record.put<uint32_t>(12, stream->id);
  record.put<uint32_t>(16, event->id);
  record.put<uint32_t>(24, stream->context->device);
  record.put<uint64_t>(48, event->sync);
  if (g_event_times.load() != 0 && record.size > 48) {
    deliver_later(record, event->done, event->done, stream->context, 40);
  } else {
    deliver(record);
  }
  return 0;
}

FAKE_EXPORT int cuEventQuery(Event *event) {
  USABLE();
  Call call(kDriverApi, 120, "cuEventQuery");
  return call.give(event->done <= gpu_ns() ? 0 : 600);
}

FAKE_EXPORT int cuEventSynchronize(Event *event) {
  USABLE();
  Call call(kDriverApi, 121, "cuEventSynchronize");
  uint64_t start = cupti_now();
  if (event->done != 0) {
    sleep_until_gpu(event->done);
  }
  record_sync(1, start, call.correlation(), context_here(), 0xffffffff, event);
  return 0;
}

FAKE_EXPORT int cuStreamWaitEvent(void *handle, Event *event, unsigned) {
  USABLE();
  Call call(kDriverApi, 295, "cuStreamWaitEvent");
  uint64_t start = cupti_now();
  Stream *stream = stream_of(handle);
  {
    std::lock_guard hold(gpu_lock());
    stream->tail = std::max(stream->tail, event->done);
  }
  record_sync(2, start, call.correlation(), stream->context, stream->id, event);
  return 0;
}

FAKE_EXPORT int cuModuleLoadData(void **module, const void *) {
  USABLE();
  Call call(kDriverApi, 19, "cuModuleLoadData");
  *module = new uint32_t{1};
  uint64_t start = cupti_now();
  usleep(50);
  if (anybody_wants(kOverhead)) {
    Record record(kOverhead);
    record.put<uint32_t>(4, 4u << 16);  // a module that is loaded by need
    record.put<uint32_t>(8, 2);
    record.put<uint32_t>(12, static_cast<uint32_t>(getpid()));
    record.put<uint32_t>(16, system_tid());
    record.put<uint64_t>(24, start);
    record.put<uint64_t>(32, cupti_now());
    record.put<uint32_t>(40, call.correlation());
    deliver(record);
  }
  if (anybody_wants(kJit)) {
    Record record(kJit);
    record.put<uint32_t>(4, 1);  // PTX to cubin
    record.put<uint32_t>(8, 3);  // compiled
    record.put<uint32_t>(12, context_here()->device);
    record.put<uint64_t>(16, start);
    record.put<uint64_t>(24, cupti_now());
    record.put<uint32_t>(32, call.correlation());
    record.put<uint64_t>(48, 4096);
    record.put<uint32_t>(64, static_cast<uint32_t>(getpid()));
    record.put<uint32_t>(68, system_tid());
    deliver(record);
  }
  truth(R"({"what": "module", "pid": %d, "correlation": %u})", getpid(), call.correlation());
  resource_callback(6, context_here(), nullptr);
  return 0;
}

FAKE_EXPORT int cuModuleLoadDataEx(void **module, const void *image, unsigned, void *, void *) {
  return cuModuleLoadData(module, image);
}

FAKE_EXPORT int cuModuleUnload(void *module) {
  USABLE();
  Call call(kDriverApi, 22, "cuModuleUnload");
  resource_callback(7, context_here(), nullptr);
  delete static_cast<uint32_t *>(module);
  return 0;
}

// "name@ns": how long the kernel takes.
FAKE_EXPORT int cuModuleGetFunction(Function **function, void *, const char *name) {
  USABLE();
  Call call(kDriverApi, 23, "cuModuleGetFunction");
  const char *at = std::strrchr(name, '@');
  auto *made = new Function;
  made->name = at == nullptr ? name : std::string(name, at);
  made->duration = at == nullptr ? 5000 : std::strtoull(at + 1, nullptr, 10);
  *function = made;
  return 0;
}

FAKE_EXPORT int cuLaunchKernel(Function *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                               void *handle, void **, void **) {
  USABLE();
  Call call(kDriverApi, 307, "cuLaunchKernel", &function, function->name.c_str());
  if (block_x * block_y * block_z > 1024 || grid_x == 0) {
    return call.give(1);
  }
  launch_or_capture(stream_of(handle), function,
                    {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared}, call.correlation());
  return 0;
}

static int copy(uint32_t cbid, const char *name, void *handle, Copy what, bool wait) {
  USABLE();
  Call call(kDriverApi, cbid, name);
  Stream *stream = stream_of(handle);
  copy_or_capture(stream, what, call.correlation());
  if (wait) {
    wait_stream(stream);
  }
  return 0;
}

// As the driver does: an address that is none is an error.
static bool move(uint64_t device, void *to, const void *from, size_t bytes) {
  if (!is_backed()) {
    return true;
  }
  if (!is_device_memory(device, bytes)) {
    return false;
  }
  std::memcpy(to, from, bytes);
  return true;
}

FAKE_EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  if (!move(to, reinterpret_cast<void *>(to), from, bytes)) {
    return 1;
  }
  return copy(276, "cuMemcpyHtoD_v2", nullptr, {bytes, 1, 1, 3, false}, true);
}

FAKE_EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  int result = copy(278, "cuMemcpyDtoH_v2", nullptr, {bytes, 2, 3, 1, false}, true);
  return result == 0 && !move(from, to, reinterpret_cast<void *>(from), bytes) ? 1 : result;
}

FAKE_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t, const void *, size_t bytes, void *stream) {
  return copy(277, "cuMemcpyHtoDAsync_v2", stream, {bytes, 1, 2, 3, true}, false);
}

FAKE_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream) {
  int result = copy(279, "cuMemcpyDtoHAsync_v2", stream, {bytes, 2, 3, 2, true}, false);
  return result == 0 && !move(from, to, reinterpret_cast<void *>(from), bytes) ? 1 : result;
}

FAKE_EXPORT int cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t bytes, void *stream) {
  return copy(281, "cuMemcpyDtoDAsync_v2", stream, {bytes, 8, 3, 3, true}, false);
}

FAKE_EXPORT int cuMemcpyPeerAsync(uint64_t, Context *destination, uint64_t, Context *source, size_t bytes,
                                  void *stream) {
  Copy what{
      bytes, 10, 3, 3, true, static_cast<int32_t>(source->device), static_cast<int32_t>(destination->device)};
  return copy(319, "cuMemcpyPeerAsync", stream, what, false);
}

FAKE_EXPORT int cuMemsetD8Async(uint64_t, unsigned char value, size_t count, void *handle) {
  USABLE();
  Call call(kDriverApi, 216, "cuMemsetD8Async");
  memset_or_capture(stream_of(handle), value, count, true, call.correlation());
  return 0;
}

FAKE_EXPORT int cuMemsetD8_v2(uint64_t address, unsigned char value, size_t count) {
  USABLE();
  memset_or_capture(stream_of(nullptr), value, count, false, 0);
  if (is_backed()) {
    std::memset(reinterpret_cast<void *>(address), value, count);
  }
  return 0;
}

FAKE_EXPORT int cuGetErrorName(int, const char **name) {
  *name = nullptr;
  return 1;
}

FAKE_EXPORT int cuMemsetD32Async(uint64_t address, unsigned value, size_t count, void *handle) {
  USABLE();
  Call call(kDriverApi, 220, "cuMemsetD32Async");
  memset_or_capture(stream_of(handle), value, count * 4, true, call.correlation());
  for (size_t i = 0; i < count && is_backed(); ++i) {
    std::memcpy(reinterpret_cast<uint32_t *>(address) + i, &value, sizeof(value));
  }
  return 0;
}

FAKE_EXPORT int cuProfilerStart() {
  USABLE();
  Call call(kDriverApi, 308, "cuProfilerStart");
  return 0;
}

FAKE_EXPORT int cuProfilerStop() {
  USABLE();
  Call call(kDriverApi, 309, "cuProfilerStop");
  return 0;
}

FAKE_EXPORT int cuPointerGetAttribute(void *data, int which, uint64_t address) {
  USABLE();
  Call call(kDriverApi, 310, "cuPointerGetAttribute");
  if (is_backed() && !is_device_memory(address, 1)) {
    return call.give(1);
  }
  if (which == 1) {  // the context
    Context *context = trap("pooled") != 0 ? nullptr : primary_context(0);
    std::memcpy(data, &context, sizeof(context));
    return 0;
  }
  std::memset(data, 0, 4);
  return 0;
}

namespace {
thread_local std::vector<Context *> g_pushed;
}

FAKE_EXPORT int cuCtxPushCurrent_v2(Context *context) {
  USABLE();
  g_pushed.push_back(current_context());
  set_current(context);
  return 0;
}

FAKE_EXPORT int cuCtxPopCurrent_v2(Context **context) {
  USABLE();
  if (g_pushed.empty()) {
    return 201;
  }
  *context = current_context();
  set_current(g_pushed.back());
  g_pushed.pop_back();
  return 0;
}

FAKE_EXPORT int cuThreadExchangeStreamCaptureMode(int *mode) {
  USABLE();
  thread_local int now = 0;
  std::swap(now, *mode);
  return 0;
}

FAKE_EXPORT int cuStreamQuery(void *handle) {
  USABLE();
  return is_stream_done(stream_of(handle)) ? 0 : 600;
}
