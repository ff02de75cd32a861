// An injection library that shows how the CUPTI of this machine behaves, without the agent: tools/gpu_probe.py builds and reads it.
//
// It enables what the agent enables, flushes every 200 ms once a context exists, and writes a line for everything that CUPTI does:
//   SECONDS THREAD EVENT key=value …        (seconds of CLOCK_MONOTONIC)
// Each flush is preceded by a *canary*: one traced cuDeviceGetCount of the flushing thread. Its record must come with that flush,
// whatever the GPU is doing, or somebody else receives the records.
//
// PROBE_CUPTI: the library. PROBE_OUT: prefix of the output file. PROBE_KB: size of a buffer (1024).
// PROBE_KINDS: the kinds to enable, with commas between ("" is none); nothing is written then but the end: a floor for benchmarks.
// PROBE_EARLY: flush from the first moment, also while cuInit runs. PROBE_NODES: record the nodes of graphs, not whole graphs.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "drivers/cupti.h"

namespace {

CuptiFunctions g_call;
CuptiSubscriber g_subscriber;
int (*g_canary)(int *) = nullptr;
uint32_t g_canary_cbid = 0;
FILE *g_out = nullptr;
size_t g_buffer_size = 1024 << 10;
std::atomic<int> g_flushing{-1};  // the flag of the flush that is under way
std::atomic<int> g_buffers_out{0};
std::atomic<bool> g_has_context{false};
std::atomic<uint32_t> g_canary_tid{0};
std::atomic<unsigned> g_canaries_back{0};
std::atomic<uint64_t> g_work{0};  // records of the GPU's work, where nothing is written
const char *g_kinds = nullptr;    // not null: quiet, these kinds alone
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

bool is_set(const char *name) {
  return getenv(name) != nullptr;
}

uint64_t clock_of(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

uint64_t monotonic() {
  return clock_of(CLOCK_MONOTONIC);
}

uint32_t thread() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}

__attribute__((format(printf, 1, 2))) void say(const char *format, ...) {
  va_list words;
  va_start(words, format);
  pthread_mutex_lock(&g_lock);
  std::fprintf(g_out, "%.9f %u ", static_cast<double>(monotonic()) / 1e9, thread());
  std::vfprintf(g_out, format, words);
  std::fputc('\n', g_out);
  std::fflush(g_out);
  pthread_mutex_unlock(&g_lock);
  va_end(words);
}

// Which clock CUPTI's timestamps are on: ours is CLOCK_MONOTONIC.
void say_clock(const char *when) {
  uint64_t time = 0;
  CuptiResult result = g_call.get_timestamp(&time);
  auto off = static_cast<long long>(time - monotonic());
  auto off_real = static_cast<long long>(time - clock_of(CLOCK_REALTIME));
  say("CLOCK when=%s result=%u from_ours_ns=%lld from_realtime_ns=%lld", when, result, off, off_real);
}

void request(uint8_t **buffer, size_t *size, size_t *most) {
  *buffer = static_cast<uint8_t *>(calloc(1, g_buffer_size));
  *size = g_buffer_size;
  *most = 0;
  int out = ++g_buffers_out;
  if (g_kinds != nullptr) {
    return;
  }
  say("REQUEST buffer=%p out=%d during_flush=%d", static_cast<void *>(*buffer), out, g_flushing.load());
}

struct Counts {
  unsigned records = 0, work = 0, unfinished = 0, api = 0, overhead = 0, other = 0;
};

void count(const CuptiActivity *record, Counts &counts) {
  ++counts.records;
  uint64_t start = 0, end = 1;
  uint32_t correlation = 0, cbid = 0;
  const char *what = "other";
  switch (record->kind) {
    case kCuptiRuntime:
    case kCuptiDriver: {
      auto *api = reinterpret_cast<const CuptiApiActivity *>(record);
      start = api->start, end = api->end, correlation = api->correlation, cbid = api->cbid;
      what = record->kind == kCuptiDriver ? "driver" : "runtime";
      ++counts.api;
      if (api->tid == g_canary_tid.load() && record->kind == kCuptiDriver && cbid == g_canary_cbid) {
        ++g_canaries_back;
        what = "canary";
      }
      break;
    }
    case kCuptiConcurrentKernel: {
      auto *kernel = reinterpret_cast<const CuptiKernelActivity *>(record);
      start = kernel->start, end = kernel->end, correlation = kernel->correlation;
      what = "kernel";
      ++counts.work;
      break;
    }
    case kCuptiMemcpy: {
      auto *copy = reinterpret_cast<const CuptiMemcpyActivity *>(record);
      start = copy->start, end = copy->end, correlation = copy->correlation;
      what = "copy";
      ++counts.work;
      break;
    }
    case kCuptiGraph: {
      auto *graph = reinterpret_cast<const CuptiGraphActivity *>(record);
      start = graph->start, end = graph->end, correlation = graph->correlation;
      what = "graph";
      ++counts.work;
      break;
    }
    case kCuptiOverhead: {
      auto *overhead = reinterpret_cast<const CuptiOverheadActivity *>(record);
      start = overhead->start, end = overhead->end;
      what = "overhead";
      ++counts.overhead;
      break;
    }
    default:
      ++counts.other;
  }
  counts.unfinished += end == 0 ? 1 : 0;
  if (g_kinds != nullptr) {
    return;
  }
  static std::atomic<unsigned> shown{0};
  if (shown.fetch_add(1) < 400) {
    const char *name = "";
    if (cbid != 0) {
      g_call.get_callback_name(record->kind == kCuptiDriver ? kCuptiDriverApi : kCuptiRuntimeApi, cbid,
                               &name);
    }
    say("RECORD kind=%u what=%s correlation=%u start=%.9f end=%.9f name=%s", record->kind, what, correlation,
        static_cast<double>(start) / 1e9, static_cast<double>(end) / 1e9, name);
  }
}

void complete(CudaContext, uint32_t, uint8_t *buffer, size_t size, size_t valid) {
  Counts counts;
  CuptiActivity *record = nullptr;
  while (valid != 0 && g_call.activity_get_next_record(buffer, valid, &record) == kCuptiSuccess) {
    count(record, counts);
  }
  int out = --g_buffers_out;
  if (g_kinds != nullptr) {
    g_work += counts.work;
    free(buffer);
    return;
  }
  say("COMPLETE buffer=%p size=%zu valid=%zu records=%u work=%u unfinished=%u api=%u overhead=%u other=%u "
      "out=%d "
      "during_flush=%d",
      static_cast<void *>(buffer), size, valid, counts.records, counts.work, counts.unfinished, counts.api,
      counts.overhead, counts.other, out, g_flushing.load());
  free(buffer);
}

void flush(uint32_t flag, bool with_canary) {
  unsigned before = g_canaries_back.load();
  if (with_canary && g_canary != nullptr) {
    int devices = 0;
    g_canary_tid.store(thread());
    g_canary(&devices);
  }
  g_flushing.store(static_cast<int>(flag));
  uint64_t begin = monotonic();
  CuptiResult result = g_call.activity_flush_all(flag);
  auto took = static_cast<double>(monotonic() - begin) / 1e6;
  g_flushing.store(-1);
  say("FLUSH flag=%u result=%u ms=%.3f out=%d canaries=%u", flag, result, took, g_buffers_out.load(),
      g_canaries_back.load() - before);
}

void *flush_for_ever(void *) {
  for (unsigned round = 0;; ++round) {
    usleep(200'000);
    if (g_has_context.load() || is_set("PROBE_EARLY")) {
      if (round % 5 == 1) {
        say_clock("later");
      }
      flush(0, g_has_context.load());
    }
  }
}

void on_callback(void *, CuptiDomain domain, uint32_t cbid, const void *) {
  constexpr uint32_t kInitFinished = 5;
  if (domain != kCuptiResource) {
    return;
  }
  if (cbid == kCuptiContextCreated) {
    say("CONTEXT_CREATED");
    say_clock("context-created");
    g_has_context.store(true);
  } else if (cbid == kInitFinished) {
    say("INIT_FINISHED");
    say_clock("init-finished");
  } else if (cbid == kCuptiContextDestroyStarting) {
    say("CONTEXT_DESTROY");
  }
}

void at_exit() {
  say("ATEXIT out=%d", g_buffers_out.load());
  say_clock("exit");
  flush(0, true);
  flush(0, true);
  flush(1, false);
  say("END out=%d work=%llu", g_buffers_out.load(), static_cast<unsigned long long>(g_work.load()));
}

void start_flushing() {
  g_has_context.store(g_kinds != nullptr);
  pthread_t flusher;
  pthread_create(&flusher, nullptr, flush_for_ever, nullptr);
  pthread_detach(flusher);
  std::atexit(at_exit);
  say("INJECTED");
}

bool load(const char *path) {
  void *library = dlopen(path, RTLD_NOW);
  if (library == nullptr) {
    say("FAILED dlopen=%s", dlerror());
    return false;
  }
#define WARPLENS_PROBE_LOAD(member, name, parameters) \
  g_call.member = reinterpret_cast<CuptiResult(*) parameters>(dlsym(library, #name));
  WARPLENS_CUPTI_REQUIRED(WARPLENS_PROBE_LOAD)
  WARPLENS_CUPTI_OPTIONAL(WARPLENS_PROBE_LOAD)
  WARPLENS_CUPTI_SEVERAL(WARPLENS_PROBE_LOAD)
  if (void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) {
    g_canary = reinterpret_cast<int (*)(int *)>(dlsym(driver, "cuDeviceGetCount"));
  }
  return true;
}

// A second subscriber is refused; which sizes of its parameters are accepted before that?
void subscribe_again() {
  for (size_t size = 24; g_call.subscribe_v2 != nullptr && size <= 48; size += 8) {
    char other[64] = "";
    CuptiSubscriber again = nullptr;
    CuptiSubscriberParams wanted = {};
    wanted.size = size;
    wanted.name = "probe again";
    wanted.other_name = other;
    wanted.other_name_size = sizeof(other);
    CuptiResult result = g_call.subscribe_v2(&again, on_callback, nullptr, &wanted);
    say("SUBSCRIBE_AGAIN size=%zu result=%u other='%s'", size, result, other);
  }
}

void set_kinds(const char *kinds, bool on) {
  for (const char *at = kinds; *at != '\0'; at += *at == ',' ? 1 : 0) {
    char *end = nullptr;
    auto kind = static_cast<CuptiKind>(std::strtoul(at, &end, 10));
    if (end == at) {
      return;
    }
    say("%s kind=%u result=%u", on ? "ENABLE" : "DISABLE", kind,
        on ? g_call.activity_enable(kind) : g_call.activity_disable(kind));
    at = end;
  }
}

// As the agent does: all of the runtime, of the driver a few calls.
void enable_driver_calls() {
  for (uint32_t cbid = 1; cbid < 1000; ++cbid) {
    const char *name = nullptr;
    if (g_call.get_callback_name(kCuptiDriverApi, cbid, &name) != kCuptiSuccess || name == nullptr) {
      continue;
    }
    bool is_canary = std::strcmp(name, "cuDeviceGetCount") == 0;
    if (is_canary) {
      g_canary_cbid = cbid;
    }
    if (is_canary || std::strncmp(name, "cuLaunch", 8) == 0 || std::strncmp(name, "cuGraphLaunch", 13) == 0) {
      CuptiResult result = g_call.activity_enable_driver_api(cbid, 1);
      if (is_canary || result != kCuptiSuccess) {
        say("ENABLE_CALL name=%s cbid=%u result=%u", name, cbid, result);
      }
    }
  }
}

}  // namespace

// A benchmark switches the kinds of PROBE_KINDS on and off by this.
extern "C" __attribute__((visibility("default"))) void probe_record(int on) {
  set_kinds(g_kinds, on != 0);
}

extern "C" __attribute__((visibility("default"))) int InitializeInjection() {
  const char *prefix = getenv("PROBE_OUT"), *kib = getenv("PROBE_KB"), *path = getenv("PROBE_CUPTI");
  std::string name = std::string(prefix != nullptr ? prefix : "probe") + "." + std::to_string(getpid());
  g_out = std::fopen(name.c_str(), "w");
  if (g_out == nullptr) {
    return 1;
  }
  g_kinds = getenv("PROBE_KINDS");
  g_buffer_size = kib != nullptr ? static_cast<size_t>(atoi(kib)) << 10 : g_buffer_size;
  if (!load(path != nullptr ? path : "libcupti.so.13")) {
    return 1;
  }
  uint32_t version = 0;
  g_call.get_version(&version);
  say("VERSION cupti=%u", version);
  say_clock("first");
  say("THREAD_IDS result=%u", g_call.set_thread_id_type(kCuptiThreadIdSystem));
  say("REGISTER_CLOCK result=%u", g_call.activity_register_timestamp_callback == nullptr
                                      ? CuptiResult{kCuptiNotSupported}
                                      : g_call.activity_register_timestamp_callback(monotonic));
  say_clock("registered");
  say("SUBSCRIBE result=%u", g_call.subscribe(&g_subscriber, on_callback, nullptr));
  say_clock("subscribed");
  if (g_kinds == nullptr) {
    subscribe_again();
  }
  uint8_t on = 1;
  size_t size = sizeof(on);
  say("ZEROED result=%u", g_call.activity_set_attribute(kCuptiZeroedOutBuffer, &size, &on));
  say("CALLBACKS result=%u", g_call.activity_register_callbacks(request, complete));
  if (g_kinds != nullptr) {
    set_kinds(g_kinds, true);
    start_flushing();
    return 1;
  }
  for (uint32_t cbid : {1u, 2u, 3u, 5u, static_cast<uint32_t>(kCuptiContextDestroyStarting)}) {
    g_call.enable_callback(1, g_subscriber, kCuptiResource, cbid);
  }
  for (uint32_t kind : {kCuptiDevice, kCuptiContext, kCuptiStream, kCuptiConcurrentKernel, kCuptiMemcpy,
                        kCuptiMemset, kCuptiGraph, kCuptiSynchronization, kCuptiOverhead, kCuptiRuntime}) {
    if (kind != kCuptiGraph || !is_set("PROBE_NODES")) {
      say("ENABLE kind=%u result=%u out=%d", kind, g_call.activity_enable(kind), g_buffers_out.load());
    }
  }
  enable_driver_calls();
  start_flushing();
  return 1;
}
