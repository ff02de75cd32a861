// The fake GPUs: a timeline for each stream; work begins when the stream is free, and takes as long as the program asked for.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "session.h"

namespace fake {

std::mutex &gpu_lock() {
  static std::mutex *lock = new std::mutex;
  return *lock;
}

namespace {

std::vector<Context *> &g_contexts = *new std::vector<Context *>;
std::vector<Context *> &g_primary = *new std::vector<Context *>(16, nullptr);
thread_local Context *t_current = nullptr;
std::atomic<uint32_t> g_next_context{1};
std::atomic<uint32_t> g_next_stream{7};
std::atomic<int64_t> g_next_grid{1};

// Functions may go; the names that records point to never do, unless the trap says so.
const char *pooled(Function *function) {
  if (function->pooled == nullptr) {
    static std::set<std::string> &pool = *new std::set<std::string>;
    static char *reused = new char[4096];
    if (trap("reused-names") != 0) {
      std::strncpy(reused, function->name.c_str(), 4095);
      return reused;
    }
    function->pooled = pool.insert(function->name).first->c_str();
  }
  return function->pooled;
}

void put_place(Record &record, size_t at, const Stream &stream) {
  record.put<uint32_t>(at, stream.context->device);
  record.put<uint32_t>(at + 4, stream.context->id);
  record.put<uint32_t>(at + 8, stream.id);
}

// `device`: its number among those that the program sees; `gpu`: in the machine.
uint32_t gpu_count() {
  const char *text = setting("FAKE_CUDA_DEVICES");
  return *text == 0 ? 2 : std::min(16u, static_cast<uint32_t>(std::strtoul(text, nullptr, 10)));
}

// Of CUDA_VISIBLE_DEVICES, up to the first that there is not.
std::vector<uint32_t> visible_gpus() {
  std::vector<uint32_t> gpus;
  if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
    for (uint32_t gpu = 0; gpu < gpu_count(); ++gpu) {
      gpus.push_back(gpu);
    }
    return gpus;
  }
  for (const char *left = setting("CUDA_VISIBLE_DEVICES"); *left != 0;) {
    char *end = nullptr;
    auto gpu = static_cast<uint32_t>(std::strtoul(left, &end, 10));
    if (end == left || gpu >= gpu_count()) {
      break;
    }
    gpus.push_back(gpu);
    left = *end == ',' ? end + 1 : end;
  }
  return gpus;
}

void put_device(uint32_t device, uint32_t gpu, bool visible) {
  static char names[16][32];
  std::snprintf(names[gpu], sizeof(names[gpu]), "Fake GPU %u", gpu);
  Record record(kDevice);
  record.put<uint32_t>(4, 2);  // concurrent kernels
  record.put<uint64_t>(8, 4'800'000'000u + gpu);
  record.put<uint64_t>(16, 151'000'000'000u + gpu);
  record.put<uint32_t>(24, 65536);
  record.put<uint32_t>(28, 62'914'560);
  record.put<uint32_t>(32, 32);
  record.put<uint32_t>(36, 1'980'000);
  record.put<uint32_t>(40, 3);
  record.put<uint32_t>(44, 132);
  record.put<uint32_t>(52, 64);
  record.put<uint32_t>(56, 32);
  record.put<uint32_t>(60, 233'472);
  record.put<uint32_t>(64, 65536);
  record.put<uint32_t>(68, 65536);
  record.put<uint32_t>(72, 49152);
  record.put<uint32_t>(76, 1024);
  record.put<uint32_t>(104, 9);
  record.put<uint32_t>(108, 0);
  record.put<uint32_t>(112, device);
  for (uint32_t byte = 0; byte < 16; ++byte) {
    record.put<uint8_t>(120 + byte, static_cast<uint8_t>(0xa0 + 16 * gpu + byte));
  }
  record.put<const char *>(136, names[gpu]);
  record.put<uint8_t>(144, visible ? 1 : 0);
  deliver(record);
}

// CUPTI describes those that are hidden from the program, too.
void put_devices() {
  std::vector<bool> seen(16, false);
  for (uint32_t device = 0; device < device_count(); ++device) {
    seen[gpu_of(device)] = true;
  }
  for (uint32_t gpu = 0; gpu < gpu_count(); ++gpu) {
    if (!seen[gpu]) {
      put_device(gpu, gpu, false);
    }
  }
  for (uint32_t device = 0; device < device_count(); ++device) {
    put_device(device, gpu_of(device), true);
  }
}

void put_context(const Context &context) {
  Record record(kContext);
  record.put<uint32_t>(4, context.id);
  record.put<uint32_t>(8, context.device);
  record.put<uint16_t>(12, 1);  // CUDA
  record.put<uint16_t>(14, static_cast<uint16_t>(context.null_stream.id));
  record.put<uint32_t>(16, 0xffffffff);
  record.put<uint16_t>(22, 132);
  deliver(record);
}

void put_stream(const Context &context, const Stream &stream) {
  Record record(kStream);
  record.put<uint32_t>(4, context.id);
  record.put<uint32_t>(8, stream.id);
  record.put<uint32_t>(12, stream.priority);
  record.put<uint32_t>(16, stream.flags);
  deliver(record);
}

}  // namespace

uint32_t device_count() {
  return static_cast<uint32_t>(visible_gpus().size());
}

uint32_t gpu_of(uint32_t device) {
  std::vector<uint32_t> gpus = visible_gpus();
  return device < gpus.size() ? gpus[device] : device;
}

const std::vector<Context *> &contexts() {
  return g_contexts;
}

Context *make_context(uint32_t device) {
  auto *context = new Context;
  context->id = g_next_context.fetch_add(1);
  context->device = device;
  context->null_stream.id = g_next_stream.fetch_add(6);
  context->null_stream.context = context;
  context->null_stream.flags = 3;
  for (uint32_t index = 0; index < kSessions; ++index) {
    context->clock_callback = context->clock_callback || session(index).clock.load() != nullptr;
  }
  bool first = false;
  {
    std::lock_guard hold(gpu_lock());
    first = g_contexts.empty();
    g_contexts.push_back(context);
  }
  if (first) {
    put_devices();
  }
  put_context(*context);
  put_stream(*context, context->null_stream);
  resource_callback(1, context, nullptr);
  return context;
}

Context *primary_context(uint32_t device) {
  {
    std::lock_guard hold(gpu_lock());
    if (g_primary[device] != nullptr) {
      return g_primary[device];
    }
  }
  Context *made = make_context(device);
  std::lock_guard hold(gpu_lock());
  g_primary[device] = made;
  return made;
}

bool has_primary(uint32_t device) {
  std::lock_guard hold(gpu_lock());
  return g_primary[device] != nullptr;
}

void destroy_context(Context *context) {
  if (trap("gone-context") == 0) {
    wait_context(context);
  }
  resource_callback(2, context, nullptr);
  retire(false);
  std::lock_guard hold(gpu_lock());
  context->gone = true;
  std::erase(g_contexts, context);
  std::replace(g_primary.begin(), g_primary.end(), context, static_cast<Context *>(nullptr));
  if (t_current == context) {
    t_current = nullptr;
  }
}

void reset_device(uint32_t device) {
  Context *context = nullptr;
  {
    std::lock_guard hold(gpu_lock());
    context = g_primary[device];
  }
  if (context != nullptr) {
    destroy_context(context);
  }
}

Context *current_context() {
  return t_current == nullptr || t_current->gone ? nullptr : t_current;
}

void set_current(Context *context) {
  t_current = context;
}

Stream *stream_of(void *handle) {
  if (reinterpret_cast<uintptr_t>(handle) > 2) {
    return static_cast<Stream *>(handle);
  }
  Context *context = current_context();
  if (context == nullptr) {
    set_current(context = primary_context(0));
  }
  return &context->null_stream;
}

Stream *make_stream(Context *context, uint32_t flags, uint32_t priority) {
  auto *stream = new Stream;
  stream->id = g_next_stream.fetch_add(1);
  stream->context = context;
  stream->flags = (flags & 1) != 0 ? 2 : 1;
  stream->priority = priority;
  {
    std::lock_guard hold(gpu_lock());
    context->streams.push_back(stream);
  }
  put_stream(*context, *stream);
  resource_callback(3, context, stream);
  return stream;
}

void destroy_stream(Stream *stream) {
  resource_callback(4, stream->context, stream);
  std::lock_guard hold(gpu_lock());
  stream->gone = true;
}

void enable_and_dump(Session &, uint32_t kind) {
  std::vector<Context *> all;
  {
    std::lock_guard hold(gpu_lock());
    all = g_contexts;
  }
  if (kind == kDevice && !all.empty()) {
    put_devices();
  }
  for (Context *context : all) {
    if (kind == kContext) {
      put_context(*context);
    } else if (kind == kStream) {
      put_stream(*context, context->null_stream);
      for (const Stream *stream : context->streams) {
        put_stream(*context, *stream);
      }
    }
  }
}

uint64_t enqueue(Stream *stream, uint64_t duration, uint64_t latency) {
  std::lock_guard hold(gpu_lock());
  uint64_t start = std::max(gpu_ns() + latency, stream->tail);
  // The legacy stream and streams that block wait for each other.
  Context *context = stream->context;
  if (stream == &context->null_stream) {
    for (const Stream *other : context->streams) {
      start = other->flags == 1 ? std::max(start, other->tail) : start;
    }
  } else if (stream->flags == 1) {
    start = std::max(start, context->null_stream.tail);
  }
  stream->tail = start + duration;
  return start;
}

uint64_t run_kernel(Stream *stream, Function *function, const Dims &dims, uint32_t correlation, InGraph in,
                    uint8_t launch_type) {
  uint64_t start = enqueue(stream, function->duration);
  uint64_t end = start + function->duration;
  truth(
      R"({"what": "kernel", "pid": %d, "name": "%s", "correlation": %u, "device": %u, "stream": %u, "start": %llu, "end": %llu, "graph": %u})",
      getpid(), function->name.c_str(), correlation, stream->context->device, stream->id,
      static_cast<unsigned long long>(start - kGpuEpoch), static_cast<unsigned long long>(end - kGpuEpoch),
      in.graph);
  if (in.graph != 0 && graph_as_a_whole()) {
    return start;
  }
  Record record(kKernel);
  record.put<uint16_t>(6, 32);  // registers
  put_place(record, 40, *stream);
  for (size_t axis = 0; axis < 3; ++axis) {
    record.put<uint32_t>(52 + 4 * axis, dims.grid[axis]);
    record.put<uint32_t>(64 + 4 * axis, dims.block[axis]);
  }
  record.put<uint32_t>(76, 1024);
  record.put<uint32_t>(80, dims.shared);
  record.put<uint32_t>(84, 16);
  record.put<uint32_t>(88, 16 * 2048);
  record.put<uint32_t>(92, correlation);
  record.put<int64_t>(96, g_next_grid.fetch_add(1));
  {
    std::lock_guard hold(gpu_lock());
    record.put<const char *>(104, pooled(function));
  }
  record.put<uint8_t>(136, launch_type);
  record.put<uint32_t>(140, 1024 + dims.shared);
  record.put<uint64_t>(144, in.node);
  record.put<uint32_t>(156, in.graph);
  record.put<uint32_t>(168, 5);
  record.put<uint32_t>(172, 1);
  record.put<uint64_t>(192, 16ull * 2048);
  record.put<uint32_t>(200, 8);
  record.put<uint32_t>(204, 4);
  record.put<int32_t>(216, -1);
  deliver_later(record, start, end, stream->context);
  return start;
}

uint64_t run_copy(Stream *stream, const Copy &copy, uint32_t correlation, InGraph in) {
  uint64_t duration = 1000 + copy.bytes / 25;
  uint64_t start = enqueue(stream, duration, 1500);
  bool peer = copy.kind == 10;
  truth(
      R"({"what": "memcpy", "pid": %d, "kind": %u, "bytes": %llu, "correlation": %u, "device": %u, "stream": %u, "start": %llu, "end": %llu, "graph": %u})",
      getpid(), copy.kind, static_cast<unsigned long long>(copy.bytes), correlation, stream->context->device,
      stream->id, static_cast<unsigned long long>(start - kGpuEpoch),
      static_cast<unsigned long long>(start + duration - kGpuEpoch), in.graph);
  if (in.graph != 0 && graph_as_a_whole()) {
    return start;
  }
  Record record(peer ? kMemcpyPeer : kMemcpy);
  record.put<uint8_t>(4, copy.kind);
  record.put<uint8_t>(5, copy.source);
  record.put<uint8_t>(6, copy.destination);
  record.put<uint8_t>(7, copy.asynchronous ? 1 : 0);
  record.put<uint64_t>(8, copy.bytes);
  put_place(record, 32, *stream);
  if (peer) {
    record.put<uint32_t>(44, static_cast<uint32_t>(copy.source_device));
    record.put<uint32_t>(48, 1);
    record.put<uint32_t>(52, static_cast<uint32_t>(copy.destination_device));
    record.put<uint32_t>(56, 2);
    record.put<uint32_t>(60, correlation);
    record.put<uint64_t>(72, in.node);
    record.put<uint32_t>(80, in.graph);
  } else {
    record.put<uint32_t>(44, correlation);
    record.put<uint64_t>(64, in.node);
    record.put<uint32_t>(72, in.graph);
    record.put<uint32_t>(76, 9);
    record.put<uint64_t>(88, 1);
  }
  deliver_later(record, start, start + duration, stream->context);
  return start;
}

uint64_t run_memset(Stream *stream, uint32_t value, uint64_t bytes, bool asynchronous, uint32_t correlation,
                    InGraph in) {
  uint64_t duration = 800 + bytes / 1000;
  uint64_t start = enqueue(stream, duration, 1200);
  truth(
      R"({"what": "memset", "pid": %d, "value": %u, "bytes": %llu, "correlation": %u, "device": %u, "stream": %u, "start": %llu, "end": %llu, "graph": %u})",
      getpid(), value, static_cast<unsigned long long>(bytes), correlation, stream->context->device,
      stream->id, static_cast<unsigned long long>(start - kGpuEpoch),
      static_cast<unsigned long long>(start + duration - kGpuEpoch), in.graph);
  if (in.graph != 0 && graph_as_a_whole()) {
    return start;
  }
  Record record(kMemset);
  record.put<uint32_t>(4, value);
  record.put<uint64_t>(8, bytes);
  put_place(record, 32, *stream);
  record.put<uint32_t>(44, correlation);
  record.put<uint16_t>(48, asynchronous ? 1 : 0);
  record.put<uint16_t>(50, 3);
  record.put<uint64_t>(64, in.node);
  record.put<uint32_t>(72, in.graph);
  record.put<uint32_t>(76, 9);
  deliver_later(record, start, start + duration, stream->context);
  return start;
}

void wait_stream(Stream *stream) {
  uint64_t until;
  {
    std::lock_guard hold(gpu_lock());
    until = stream->tail;
  }
  if (until != 0) {
    sleep_until_gpu(until);
  }
}

bool is_stream_done(Stream *stream) {
  std::lock_guard hold(gpu_lock());
  return stream->tail <= gpu_ns();
}

void wait_context(Context *context) {
  std::vector<Stream *> streams;
  {
    std::lock_guard hold(gpu_lock());
    streams = context->streams;
  }
  wait_stream(&context->null_stream);
  for (Stream *stream : streams) {
    wait_stream(stream);
  }
}

void record_sync(uint32_t type, uint64_t start, uint32_t correlation, Context *context, uint32_t stream,
                 Event *event) {
  truth(R"({"what": "sync", "pid": %d, "type": %u, "correlation": %u})", getpid(), type, correlation);
  if (!anybody_wants(kSync)) {
    return;
  }
  Record record(kSync);
  record.put<uint32_t>(4, type);
  record.put<uint64_t>(8, start);
  record.put<uint64_t>(16, cupti_now());
  record.put<uint32_t>(24, correlation);
  record.put<uint32_t>(28, context->id);
  record.put<uint32_t>(32, stream);
  record.put<uint32_t>(36, event == nullptr ? 0xffffffff : event->id);
  record.put<uint64_t>(40, event == nullptr ? 0 : event->sync);
  deliver(record);
}

}  // namespace fake
