// Begins and ends the sources of the CPU side.
//
// Before a sandbox: exactly one thread moves g_sandbox from outside to entering. It ends every source
// and waits until each thread of the agent is gone, as the kernel reports it. From `inside` on nothing
// of the CPU side makes a system call. Other threads that enter meanwhile do not wait.
#include "cpu.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <new>

#include "agent/own_stack.h"
#include "agent/python/memory/layout.h"
#include "agent/python/memory/memory.h"
#include "agent/session.h"
#include "agent/session_hook.h"
#include "agent/source.h"
#include "agent/unwind/unwinder.h"
#include "spool/system/helpers.h"

namespace warplens::agent {
namespace {

const CpuSource *const kSources[] = {&kOsCallSource, &kPythonSource, &kPythonSampler, &kPerfSource,
                                     &kTorchSource};

CpuSettings g_settings{};  // written before main, or when a program begins to record itself
std::atomic<bool> g_began{false};
enum Sandbox : uint32_t { outside, entering, inside };
std::atomic<uint32_t> g_sandbox{outside};

template <typename Each>
void for_each(const Each &each) {
  if (!g_began.load(std::memory_order_acquire)) {
    return;
  }
  for (const CpuSource *source : kSources) {
    if ((source->flags & g_settings.flags) == 0) {
      continue;
    }
    try {
      each(*source);
    } catch (const std::bad_alloc &) {
      // That source records nothing, or no more.
    }
  }
}

int enter_sandbox(const char *why);
void end_cpu();

// How the stub's wrappers read the time.
void set_clock(WarplensTap &tap) {
  const ClockParams &clock = process_clock();
  tap.clock_kind = static_cast<uint32_t>(clock.kind);
  tap.clock_shift = clock.shift;
  tap.clock_t0 = clock.t0;
  tap.clock_base_ns = clock.base_ns;
  tap.clock_mult = clock.mult;
}

void begin(WarplensTap &tap, const ControlPage &control) {
  set_clock(tap);
  std::memcpy(&g_settings, &control.cpu, sizeof(g_settings));
  tap.sandboxed = enter_sandbox;
  g_began.store(true, std::memory_order_release);
  find_python();  // where the program was linked with it; later it might have to wait for the loader
  offer_own_stacks();
  for_each([&](const CpuSource &source) {
    if (source.begin != nullptr) {
      source.begin(g_settings, tap);
    }
  });
}

// Their numbers, 0 = free. More of them than this are taken for the program's.
std::atomic<uint32_t> g_own_threads[1024];
std::atomic<size_t> g_own_places{0};  // how many places were ever taken

class OwnPlace {
 public:
  OwnPlace() {
    auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
    for (size_t i = 0; i < std::size(g_own_threads); ++i) {
      uint32_t none = 0;
      if (g_own_threads[i].compare_exchange_strong(none, tid)) {
        place_ = &g_own_threads[i];
        size_t known = g_own_places.load();
        while (known <= i && !g_own_places.compare_exchange_weak(known, i + 1)) {
        }
        return;
      }
    }
  }
  ~OwnPlace() {
    if (place_ != nullptr && g_sandbox.load() == outside) {  // else who waits for us sees us to our end
      place_->store(0);
    }
  }
  OwnPlace(const OwnPlace &) = delete;
  OwnPlace &operator=(const OwnPlace &) = delete;

 private:
  std::atomic<uint32_t> *place_ = nullptr;
};

struct OwnThread {
  void (*body)(void *);
  void *argument;
  char name[16];
};

bool is_alive(uint32_t tid) {
  return syscall(SYS_tgkill, syscall(SYS_getpid), tid, 0) == 0;
}

// A sandbox may be put over all threads: ours have to be gone before, with all that they do in the end.
void wait_for_own_threads() {
  constexpr int kMostMs = 2000;
  for (int ms = 0; ms < kMostMs; ++ms) {
    bool any = false;
    for (std::atomic<uint32_t> &own : g_own_threads) {
      uint32_t tid = own.load();
      any = any || (tid != 0 && is_alive(tid));
    }
    if (!any) {
      return;
    }
    timespec little{0, 1'000'000};
    nanosleep(&little, nullptr);
  }
}

void *run_own(void *opaque) {
  OwnThread own = *static_cast<OwnThread *>(opaque);
  delete static_cast<OwnThread *>(opaque);
  Busy busy;
  HelperThread helper;
  OwnPlace place;
  pthread_setname_np(pthread_self(), own.name);
  try {
    own.body(own.argument);
  } catch (const std::bad_alloc &) {
    // It ends; the program goes on.
  }
  return nullptr;
}

int enter_sandbox(const char *why) {
  if (is_guest()) {
    return 0;
  }
  uint32_t before = outside;
  if (g_sandbox.compare_exchange_strong(before, entering)) {
    cpu_notice(CpuNotice::os_lost, 0, why);
    end_cpu();
    Busy busy;
    wait_for_own_threads();
    g_sandbox.store(inside);
  }
  return 1;
}

void abandon_cpu() {
  renew_memory();
  renew_python();
  renew_modules();
  renew_rows();
  renew_own_stacks();
  for (std::atomic<uint32_t> &own : g_own_threads) {
    own.store(0, std::memory_order_relaxed);
  }
  for_each([](const CpuSource &source) {
    if (source.abandon != nullptr) {
      source.abandon();
    }
  });
}

void begin_cpu_child() {
  if (g_sandbox.load() != outside) {
    return;
  }
  for_each([](const CpuSource &source) {
    if (source.begin_child != nullptr) {
      source.begin_child();
    }
  });
}

void change_cpu_windows() {
  if (g_sandbox.load() != outside) {
    return;
  }
  for_each([](const CpuSource &source) {
    if (source.windows_changed != nullptr) {
      source.windows_changed();
    }
  });
}

// Sources that cannot begin in a process that runs already stay off.
void attach_cpu(ProcessLog &) {
  const ControlPage *control = control_page();
  if (control == nullptr || g_sandbox.load() != outside) {
    return;
  }
  CpuSettings settings;
  std::memcpy(&settings, &control->cpu, sizeof(settings));
  uint32_t flags = 0;
  for (const CpuSource *source : kSources) {
    flags |= source->attach != nullptr ? source->flags & settings.flags : 0;
  }
  settings.flags = flags != 0 ? flags | (settings.flags & kCpuOpInputs) : 0;
  g_settings = settings;
  g_began.store(true, std::memory_order_release);
  for_each([](const CpuSource &source) { source.attach(g_settings); });
}

void detach_cpu(uint32_t) {
  for_each([](const CpuSource &source) { source.detach(); });
  g_settings.flags = 0;
}

void end_cpu() {
  if (is_cpu_over()) {
    return;
  }
  for_each([](const CpuSource &source) {
    if (source.end != nullptr) {
      source.end();
    }
  });
}

}  // namespace

constinit const SessionHook kCpuHook{.attach = attach_cpu,
                                     .detach = detach_cpu,
                                     .windows_changed = change_cpu_windows,
                                     .abandon = abandon_cpu,
                                     .begin_child = begin_cpu_child,
                                     .end = end_cpu};

bool is_cpu_over() {
  return g_sandbox.load(std::memory_order_relaxed) == inside;
}

const CpuSettings &cpu_settings() {
  return g_settings;
}

void begin_outside(const CpuSettings &settings) {
  g_settings = settings;
  g_settings.flags &= kPerfSource.flags;
  g_began.store(true, std::memory_order_release);
  static WarplensTap tap{};  // nobody calls us
  for_each([](const CpuSource &source) { source.begin(g_settings, tap); });
}

ProcessLog *cpu_log() {
  ControlPage *control = control_page();
  if (control == nullptr || control->gate.load(std::memory_order_relaxed) % 2 == 0 || is_cpu_over()) {
    return nullptr;
  }
  return own_log();
}

bool is_own_thread(uint32_t tid) {
  const size_t places = g_own_places.load(std::memory_order_acquire);
  for (size_t i = 0; i < places; ++i) {
    if (g_own_threads[i].load(std::memory_order_relaxed) == tid) {
      return true;
    }
  }
  return false;
}

void cpu_notice(CpuNotice what, int64_t value, std::string_view text) {
  if (Busy busy; busy) {
    own_cpu_notice(what, value, text);
  }
}

void own_cpu_notice(CpuNotice what, int64_t value, std::string_view text) {
  ProcessLog *log = own_log();
  if (log == nullptr) {
    return;
  }
  CpuNoticeRecord record{};
  record.head = {RecordType::cpu_notice, 0, 0, text.empty() ? 0 : log->intern(text)};
  record.start = now_ns(log->clock());
  record.value = value;
  record.notice = what;
  WideLog::Writer(log->wide()).append(record, record.start);
}

bool start_own_thread(const char *name, void (*body)(void *), void *argument) {
  auto *own = new (std::nothrow) OwnThread{body, argument, {}};
  if (own == nullptr) {
    return false;
  }
  std::strncpy(own->name, name, sizeof(own->name) - 1);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  int error = EINVAL;
  // Each thread keeps its private data on its stack; in some programs that is much.
  for (size_t size = size_t{256} << 10; error == EINVAL && size <= size_t{64} << 20; size *= 4) {
    pthread_attr_setstacksize(&attributes, size);
    error = pthread_create(&thread, &attributes, run_own, own);
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) {
    delete own;
  }
  return error == 0;
}

}  // namespace warplens::agent

extern "C" __attribute__((visibility("default"))) void warplens_tap(WarplensTap *tap) {
  using namespace warplens::agent;
  if (tap == nullptr || tap->size < sizeof(WarplensTap) || !prepare()) {
    return;
  }
  if (warplens::ControlPage *control = control_page();
      control != nullptr && (control->cpu.flags != 0 || control->cuda.backtrace != 0)) {
    begin(*tap, *control);
  }
}
