// A look-alike of libcuda, libcudart and libcupti in one library, for tests on machines without a GPU. Nothing of it is installed.
// Everything here is declared again, on purpose: a mistake in the agent's own declarations must show against it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#define FAKE_EXPORT extern "C" __attribute__((visibility("default")))

namespace fake {

// ---- version.cpp: which CUPTI this is -------------------------------------------------------------------------------------
struct Version {
  uint32_t cupti;   // as cuptiGetVersion says
  uint32_t driver;  // as cuDriverGetVersion says
  uint32_t toolkit;
};
extern const Version kVersion;

// ---- state.cpp: settings from the environment, the log, the clocks ---------------------------------------------------------
// FAKE_CUPTI_TRAPS=name[=value],…; see README.md. Returns the value, 1 where none was given, or 0 when the trap is not set.
uint64_t trap(const char *name);
const char *setting(const char *name);  // "" when unset

// Appends a line to the file that FAKE_CUDA_LOG names: violations of CUPTI's rules, and calls worth knowing about.
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);
// Appends a line of JSON to the file that FAKE_CUDA_TRUTH names: what the GPU really did, in ns of CLOCK_MONOTONIC.
__attribute__((format(printf, 1, 2))) void truth(const char *format, ...);

uint64_t monotonic_ns();
uint64_t realtime_ns();
// The fake GPU has its own clock, which CUPTI converts when it delivers.
inline constexpr uint64_t kGpuEpoch = 3'000'000'000'000'000ull;
inline uint64_t gpu_ns() {
  return monotonic_ns() + kGpuEpoch;
}
void sleep_until_gpu(uint64_t when);
uint32_t system_tid();
extern std::atomic<bool> g_initialized;  // cuInit was called
extern std::atomic<bool> g_forked;       // we are in a fork child of a process that had called it

// ---- records.cpp: activity records, laid out as this version's CUPTI does -------------------------------------------------
enum Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kKernelSerial = 3,
  kDriver = 4,
  kRuntime = 5,
  kDevice = 8,
  kContext = 9,
  kKernel = 10,
  kOverhead = 17,
  kMemcpyPeer = 22,
  kUm = 25,
  kCudaEvent = 36,
  kStream = 37,
  kSync = 38,
  kExternal = 39,
  kMemory = 49,
  kMemoryPool = 50,
  kGraphTrace = 51,
  kJit = 52,
  kUnknown = 58,  // to everybody: trap `unknown-kinds`
  kKinds = 60,
};

// Bytes of a record of this kind in this version; 0: there is no such kind here.
size_t record_size(uint32_t kind);

struct Record {
  alignas(8) uint8_t bytes[256] = {};
  size_t size = 0;
  explicit Record(uint32_t kind) : size(record_size(kind)) { put<uint32_t>(0, kind); }
  uint32_t kind() const { return get<uint32_t>(0); }
  // What lies behind the record in this version is not written.
  template <typename T>
  void put(size_t offset, T value) {
    if (offset + sizeof(T) <= size) {
      std::memcpy(bytes + offset, &value, sizeof(T));
    }
  }
  template <typename T>
  T get(size_t offset) const {
    T value;
    std::memcpy(&value, bytes + offset, sizeof(T));
    return value;
  }
};

// ---- gpu.cpp: devices, contexts, streams ------------------------------------------------------------------------------------
struct Graph;
struct Stream {
  uint32_t id = 0;
  struct Context *context = nullptr;
  uint64_t tail = 0;  // when the GPU is done with all of it
  uint32_t flags = 1;
  uint32_t priority = 0;
  Graph *capture = nullptr;
  bool gone = false;
};
struct Context {
  uint32_t id = 0;
  uint32_t device = 0;
  Stream null_stream;
  std::vector<Stream *> streams;
  uint64_t clock_offset = 0;  // to the clock of CUPTI's callers, when the context was made
  bool clock_callback = false;
  bool gone = false;
};
struct Function {
  std::string name;
  uint64_t duration = 5000;
  const char *pooled = nullptr;  // what records point to
  uint32_t module = 0;
};
struct Event {
  uint32_t id = 0;
  Stream *stream = nullptr;
  uint64_t done = 0;  // GPU time
  uint64_t sync = 0;  // counts its records
};

std::mutex &gpu_lock();                     // guards everything of this section
uint32_t device_count();                    // that the program sees
uint32_t gpu_of(uint32_t device);           // CUDA_VISIBLE_DEVICES: which GPU of the machine that is
Context *primary_context(uint32_t device);  // makes it; takes the lock itself
bool has_primary(uint32_t device);
Context *current_context();
void set_current(Context *context);
Context *make_context(uint32_t device);
void destroy_context(Context *context);
void reset_device(uint32_t device);
Stream *stream_of(
    void *handle);  // null and the legacy and per-thread handles: the null stream of the current context
Stream *make_stream(Context *context, uint32_t flags, uint32_t priority);
void destroy_stream(Stream *stream);
const std::vector<Context *> &contexts();
// Puts work on a stream's timeline: returns when it begins (ns of the GPU), and moves the tail behind it.
uint64_t enqueue(Stream *stream, uint64_t duration, uint64_t latency = 2000);

struct Dims {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t shared;
};
struct InGraph {
  uint64_t node = 0;
  uint32_t graph = 0;
};
// Kinds of memory and copies have CUPTI's numbers. Each puts work on the timeline and returns when it begins there.
struct Copy {
  uint64_t bytes;
  uint8_t kind, source, destination;
  bool asynchronous;
  int32_t source_device = -1, destination_device = -1;
};
uint64_t run_kernel(Stream *stream, Function *function, const Dims &dims, uint32_t correlation,
                    InGraph in = {}, uint8_t launch_type = 0);
uint64_t run_copy(Stream *stream, const Copy &copy, uint32_t correlation, InGraph in = {});
uint64_t run_memset(Stream *stream, uint32_t value, uint64_t bytes, bool asynchronous, uint32_t correlation,
                    InGraph in = {});
// graphs.cpp: at once, or as a node of the graph that the stream is being captured into.
void launch_or_capture(Stream *stream, Function *function, const Dims &dims, uint32_t correlation);
void copy_or_capture(Stream *stream, const Copy &copy, uint32_t correlation);
void memset_or_capture(Stream *stream, uint32_t value, uint64_t bytes, bool asynchronous,
                       uint32_t correlation);
void wait_stream(Stream *stream);
bool is_stream_done(Stream *stream);

// FAKE_CUDA_BACKED: memory of devices is real, and copies copy.
bool is_backed();
void forget_device_memory();
bool is_device_memory(uint64_t address, uint64_t bytes);
void wait_context(Context *context);
void record_sync(uint32_t type, uint64_t start, uint32_t correlation, Context *context, uint32_t stream,
                 Event *event);

// ---- activity.cpp: kinds, buffers, delivery ---------------------------------------------------------------------------------
uint64_t cupti_now();                // the registered clock, else CLOCK_REALTIME
void deliver(const Record &record);  // a record that is complete
// Work of the GPU: `start` and `end` are its times, at offsets 16 and 24 (`times`), converted when it is done.
void deliver_later(const Record &record, uint64_t start, uint64_t end, Context *context, size_t times = 16);
bool anybody_wants(uint32_t kind);
bool graph_as_a_whole();
void deliver_api(const Record &record, uint32_t domain, uint32_t cbid);
void device_records(Context *context, Stream *stream);

// ---- callbacks.cpp: subscribers and API calls -------------------------------------------------------------------------------
enum Domain : uint32_t {
  kDriverApi = 1,
  kRuntimeApi = 2,
  kResource = 3,
  kSynchronize = 4,
  kNvtx = 5,
  kState = 6
};
struct ResourceData {
  void *context;
  void *handle;
  void *descriptor;
};
void resource_callback(uint32_t id, Context *context, void *handle, void *descriptor = nullptr);
void fatal_error();

// One call of an API function, from its entry to its return.
class Call {
 public:
  Call(Domain domain, uint32_t cbid, const char *name, const void *params = nullptr,
       const char *symbol = nullptr);
  ~Call();
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;
  int give(int result) {
    result_ = result;
    return result;
  }
  uint32_t correlation() const { return correlation_; }
  uint64_t start() const { return start_; }

 private:
  void fire(uint32_t site);
  Domain domain_;
  uint32_t cbid_;
  const char *name_;
  const void *params_;
  const char *symbol_;
  uint32_t correlation_;
  int result_ = 0;
  uint64_t start_ = 0;
  Call *outer_;
  uint64_t data_[4] = {};
};
const char *callback_name(uint32_t domain, uint32_t cbid);

void play_script();  // script.cpp: in a thread

// ---- memory.cpp -------------------------------------------------------------------------------------------------------------
struct Pool {
  uint64_t address = 0;
  uint64_t size = 0, used = 0, threshold = 0;
  uint32_t device = 0;
};

// What the driver answers in a fork child of a process that had started it, and before cuInit: CUDA_ERROR_NOT_INITIALIZED.
inline int usable() {
  return g_forked.load() || !g_initialized.load() ? 3 : 0;
}
#define USABLE()                    \
  if (int no = usable(); no != 0) { \
    return no;                      \
  }

}  // namespace fake
