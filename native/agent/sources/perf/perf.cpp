// Records native stacks and thread states by perf events.
// One thread reads the switches of all CPUs. A CPU's samples are read by a thread on that CPU, so
// that the sampled thread stands still during it.
#include <poll.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <mutex>
#include <new>
#include <optional>

#include "agent/hooks/cpu.h"
#include "agent/source.h"
#include "agent/unwind/unwinder.h"
#include "attributes.h"
#include "kernel.h"
#include "ring.h"
#include "samples.h"
#include "schedstat.h"
#include "spool/system/helpers.h"
#include "spool/system/subject.h"
#include "states.h"
#include "threads.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kHz = 1000;
constexpr uint32_t kHzWithoutCounters = 250;  // a timer of a virtual machine is dear
constexpr int kManyCpus = 16;
constexpr size_t kPythonReaders = 8;
constexpr size_t kMostJoined = 256;  // threads that were there before: each has two files for each CPU
constexpr int kIdleMs = 250;         // so late, at most, does a thread that has nothing to do see the end
constexpr int kSettleMs = 100;
constexpr int kSettleChildMs = 2;  // many children end or become another program before there is a sample
constexpr uint64_t kSparing = 50;  // a look at all threads takes at most 1/50 of a CPU
constexpr uint64_t kSlack = 2'000'000;  // ns: a record is timed before it is written

struct PerfCpu {
  PerfCpu(const SampleForm &form, SampledPython &python) : samples(form, python) {}

  std::mutex mutex;  // held while the ring of samples is read
  PerfRing sample_ring;
  PerfRing switch_ring;
  PerfSamples samples;
  bool served = false;  // by a separate thread
};

struct Perf {
  bool wants_samples = false;
  bool wants_states = false;
  SampleForm form{};
  std::optional<perf_event_attr> sample_event;
  std::optional<perf_event_attr> switch_event;
  SampledPython pythons[kPythonReaders];
  std::deque<PerfCpu> cpus;
  std::mutex states_mutex;  // held while rings of switches are read
  PerfStates states;
  std::optional<SchedStates> sched_states;  // instead
  bool recorded = false;                    // states, when they were looked at last
  uint64_t looked_for_python = 0;           // the version of the mappings then
  std::atomic<bool> ended{false};
  int main_tid = 0;
  bool opens_later = false;  // in the child of a fork, which may be about to become another program
  std::atomic<bool> opened{false};
};

alignas(Perf) char g_storage[sizeof(Perf)];
Perf *g_perf = nullptr;

// The first event says whether, and how, there can be others.
int open_first_samples(Perf &perf, PerfRing &ring, int cpu, size_t pages, uint32_t wanted_hz,
                       Backtrace backtrace) {
  int error = 0;
  const bool shown = shows_kernel_addresses();
  for (bool cycles : {true, false}) {
    for (KernelPart kernel : {KernelPart::frames, KernelPart::time, KernelPart::none}) {
      if (kernel == KernelPart::frames && !shown) {
        continue;
      }
      uint32_t hz = wanted_hz != 0 ? wanted_hz : cycles ? kHz : kHzWithoutCounters;
      perf.sample_event = sample_attributes(cycles, hz, backtrace, kernel);
      perf.form = {backtrace, 1'000'000'000u / hz, kernel == KernelPart::frames};
      error = ring.open(*perf.sample_event, perf.main_tid, cpu, pages, 8);
      if (error == 0) {
        ring.enable(false);  // what we do to note it is no work of the program
        own_cpu_notice(CpuNotice::native, hz, cycles ? "cycles" : "cpu-clock");
        if (kernel != KernelPart::frames) {
          own_cpu_notice(
              kernel == KernelPart::none ? CpuNotice::kernel_hidden : CpuNotice::kernel_frames_hidden, 0);
        }
        ring.enable(true);
        return 0;
      }
      // Chains may be refused for other reasons, such as memory.
      if (kernel != KernelPart::frames && error != EACCES && error != EPERM) {
        break;
      }
    }
  }
  return error;
}

// Leaves the events of the first CPU in `ring`: a short process has no time to open them twice.
void open_samples(Perf &perf, const CpuSettings &settings, const cpu_set_t &allowed, size_t pages,
                  PerfRing &ring) {
  Backtrace backtrace = settings.backtrace;
#if defined(__aarch64__)
  if (backtrace == Backtrace::automatic) {
    backtrace = Backtrace::frame_pointer;
  }
#endif
  int first = 0;
  while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &allowed)) {
    ++first;
  }
  if (int error = open_first_samples(perf, ring, first, pages, settings.native_hz, backtrace)) {
    if (!is_outside()) {
      own_cpu_notice(CpuNotice::perf_denied, error, "samples");
    }
    perf.wants_samples = false;
  }
}

// Threads that were there before we came. What they begin while we are at it has no event: so we look once more.
void join_others(Perf &perf) {
  std::vector<uint32_t> known{static_cast<uint32_t>(perf.main_tid)};
  for (int round = 0; round < 2; ++round) {
    for (const SubjectThread &thread : subject_threads(perf.main_tid)) {
      if (known.size() >= kMostJoined || std::find(known.begin(), known.end(), thread.tid) != known.end()) {
        continue;
      }
      known.push_back(thread.tid);
      for (PerfCpu &cpu : perf.cpus) {
        if (cpu.sample_ring.is_open()) {
          cpu.sample_ring.join(*perf.sample_event, static_cast<int>(thread.tid));
        }
        if (cpu.switch_ring.is_open()) {
          cpu.switch_ring.join(*perf.switch_event, static_cast<int>(thread.tid));
        }
      }
    }
  }
}

void open_events(Perf &perf) {
  const CpuSettings &settings = cpu_settings();
  perf.wants_samples = (settings.flags & kCpuNativeSamples) != 0;
  perf.wants_states = (settings.flags & kCpuStates) != 0;
  cpu_set_t allowed;
  if (sched_getaffinity(perf.main_tid, sizeof(allowed), &allowed) != 0) {
    CPU_ZERO(&allowed);
    CPU_SET(0, &allowed);
  }
  const bool many = CPU_COUNT(&allowed) > kManyCpus;
  const size_t pages = many ? 16 : 32;
  PerfRing first;
  if (perf.wants_samples) {
    open_samples(perf, settings, allowed, pages, first);
  }
  if (perf.wants_states) {
    perf.switch_event = switch_attributes();
    for (const SubjectThread &thread : subject_threads(perf.main_tid)) {
      perf.states.begin(thread.tid, thread.state, now_ns(process_clock()));
      if (!thread.name.empty()) {
        perf.states.name(thread.tid, thread.name);
      }
    }
  }
  int error = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) {
      continue;
    }
    PerfCpu &one = perf.cpus.emplace_back(perf.form, perf.pythons[perf.cpus.size() % kPythonReaders]);
    if (first.is_open() && first.cpu() == cpu) {
      one.sample_ring.take_over(first);
    } else if (perf.wants_samples && error == 0) {
      error = one.sample_ring.open(*perf.sample_event, perf.main_tid, cpu, pages, 8);
    }
    if (perf.wants_states) {
      int denied = one.switch_ring.open(*perf.switch_event, perf.main_tid, cpu, many ? 8 : 16, 2);
      if (denied != 0 && is_outside()) {
        perf.wants_states = false;
      } else if (denied != 0) {
        perf.wants_states = false;
        perf.sched_states.emplace();
        own_cpu_notice(CpuNotice::perf_denied, denied, "thread states");
        own_cpu_notice(CpuNotice::schedstat, SchedStates::kBetweenLooks);
      }
    }
  }
  if (error != 0) {
    own_cpu_notice(CpuNotice::perf_denied, error, "samples");
  }
  if (is_outside()) {
    join_others(perf);
  }
}

void read_samples(Perf &perf, PerfCpu &cpu, bool prompt) {
  std::lock_guard lock(cpu.mutex);
  ProcessLog *log = nullptr;
  bool asked = false;
  cpu.sample_ring.drain([&](const perf_event_header &record) {
    if (!asked) {
      log = cpu_log();
      asked = true;
    }
    try {
      cpu.samples.add(record, perf.ended.load() ? nullptr : log, prompt);
    } catch (const std::bad_alloc &) {
      cpu.samples.lose();
    }
  });
}

void tell_lost(uint64_t count) {
  if (count != 0) {
    own_cpu_notice(CpuNotice::perf_lost, static_cast<int64_t>(count));
  }
}

// What goes on is written too when recording ends, or pauses because a window closed. The caller holds the mutex.
void read_states(Perf &perf, bool ending) {
  const uint64_t now = now_ns(process_clock());
  ProcessLog *log = cpu_log();
  const bool pauses = log == nullptr && perf.recorded;
  perf.recorded = log != nullptr;
  log = pauses ? own_log() : log;
  if (perf.sched_states.has_value()) {
    perf.sched_states->look(now, log);
    if (ending || pauses) {
      perf.sched_states->end(log);
    }
    return;
  }
  for (PerfCpu &cpu : perf.cpus) {
    cpu.switch_ring.drain([&](const perf_event_header &record) {
      perf.states.add(record, static_cast<uint32_t>(cpu.switch_ring.cpu()));
    });
  }
  if (ending || pauses) {
    perf.states.end(now, log);
  } else {
    perf.states.settle(now - kSlack, log);
  }
  tell_lost(perf.states.take_lost());
}

void read_switches(Perf &perf, bool ending) {
  std::lock_guard lock(perf.states_mutex);
  if ((!perf.wants_states && !perf.sched_states.has_value()) || perf.ended.load()) {
    return;
  }
  try {
    read_states(perf, ending);
  } catch (const std::bad_alloc &) {
    tell_lost(1);
  }
}

void serve_cpu(void *argument) {
  auto &cpu = *static_cast<PerfCpu *>(argument);
  Perf &perf = *g_perf;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu.sample_ring.cpu(), &only);
  bool pinned = sched_setaffinity(0, sizeof(only), &only) == 0;
  pollfd wait{cpu.sample_ring.fd(), POLLIN, 0};
  while (!perf.ended.load(std::memory_order_relaxed)) {
    read_samples(perf, cpu, pinned);
    int ready = poll(&wait, 1, kIdleMs);
    if (ready < 0 && errno != EINTR) {
      return;
    }
    if (ready > 0 && (wait.revents & POLLIN) == 0) {
      poll(nullptr, 0, kSettleMs);  // no thread has this event any more, or the program closed our file
      ready = 0;
    }
    if (ready == 0 && only_helpers_left()) {
      return;
    }
  }
}

// Only when something was mapped: a process that forks while we are at it has the loader's lock held in the child, for ever.
void look_for_python(Perf &perf) {
  const uint64_t mapped = modules().version();
  if (perf.wants_samples && !is_outside() && mapped != perf.looked_for_python &&
      g_sampled_python.load(std::memory_order_relaxed) == nullptr) {
    perf.looked_for_python = mapped;
    const PythonRuntime *python = find_python();
    if (python != nullptr && python->is_known && memory_denied() == 0) {
      g_sampled_python.store(python, std::memory_order_release);
    }
  }
}

void serve(void *) {
  Perf &perf = *g_perf;
  if (perf.opens_later) {
    poll(nullptr, 0, kSettleChildMs);
    open_events(perf);
  } else {
    perf.opened.wait(false);
  }
  std::vector<pollfd> waits;
  int wait_ms =
      perf.sched_states.has_value() ? static_cast<int>(SchedStates::kBetweenLooks / 1'000'000) : kSettleMs;
  for (uint32_t turn = 1; !perf.ended.load(std::memory_order_relaxed); ++turn) {
    if (turn % 16 == 0 && only_helpers_left()) {
      return;
    }
    waits.clear();
    for (PerfCpu &cpu : perf.cpus) {
      if (cpu.sample_ring.is_open() && !cpu.served) {
        waits.push_back({cpu.sample_ring.fd(), POLLIN, 0});
      }
      if (cpu.switch_ring.is_open()) {
        waits.push_back({cpu.switch_ring.fd(), POLLIN, 0});
      }
    }
    if (waits.empty() && !perf.sched_states.has_value()) {
      return;
    }
    poll(waits.data(), waits.size(), wait_ms);
    bool gone = false;
    for (const pollfd &wait : waits) {
      gone |= (wait.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
      for (PerfCpu &cpu : perf.cpus) {
        if (cpu.sample_ring.fd() == wait.fd && !cpu.served && (wait.revents & POLLIN) != 0) {
          cpu.served = start_own_thread("warplens-perf", serve_cpu, &cpu);
        }
      }
    }
    const uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    read_switches(perf, false);
    if (perf.sched_states.has_value()) {
      uint64_t cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
      wait_ms = static_cast<int>(
          std::clamp(cost * kSparing, SchedStates::kBetweenLooks, SchedStates::kMostBetweenLooks) /
          1'000'000);
    }
    look_for_python(perf);
    if (gone) {
      poll(nullptr, 0, kSettleMs);
    }
  }
}

void make() {
  g_perf = new (g_storage) Perf;
  g_perf->main_tid = is_outside() ? subject() : static_cast<int>(syscall(SYS_gettid));
}

void begin(const CpuSettings &, WarplensTap &) {
  Busy busy;
  make();
  // Our thread begins before the events do: it is not recorded itself.
  if (start_own_thread("warplens-perf", serve, nullptr)) {
    try {
      open_events(*g_perf);
    } catch (const std::bad_alloc &) {
      g_perf->wants_samples = g_perf->wants_states = false;
    }
  }
  g_perf->opened.store(true);
  g_perf->opened.notify_all();
}

// [FORK] The memory is left to nobody: other threads may have been changing it.
void abandon() {
  if (g_perf == nullptr) {
    return;
  }
  for (PerfCpu &cpu : g_perf->cpus) {
    cpu.sample_ring.abandon();
    cpu.switch_ring.abandon();
  }
  g_perf = nullptr;
  g_sampled_python.store(nullptr);
}

void begin_child() {
  make();
  g_perf->opens_later = true;
  start_own_thread("warplens-perf", serve, nullptr);
}

void end() {
  Busy busy;
  Perf *perf = g_perf;
  if (perf == nullptr || !busy) {
    return;
  }
  for (PerfCpu &cpu : perf->cpus) {
    cpu.sample_ring.enable(false);
    read_samples(*perf, cpu, false);
    tell_lost(cpu.samples.take_lost());
  }
  read_switches(*perf, true);
  perf->ended.store(true);
}

}  // namespace

extern const CpuSource kPerfSource{kCpuNativeSamples | kCpuStates, begin, abandon, begin_child, end};

}  // namespace warplens::agent
