// Samples Python stacks by the clock.
// One thread of the agent reads all threads, and holds no lock of theirs.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "agent/hooks/cpu.h"
#include "agent/python/memory/interpreters.h"
#include "agent/python/memory/memory.h"
#include "agent/python/sampling/pace.h"
#include "agent/python/sampling/sampling.h"
#include "agent/session.h"
#include "agent/source.h"
#include "opcodes.h"
#include "spool/system/helpers.h"

namespace warplens::agent {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint32_t kSharePerCpu =
    30;  // thousandths of a processor that may go into looking, for each there is
constexpr uint32_t kMostShare = 80;
constexpr uint64_t kMostStrange = 1000;   // stacks that make no sense, where none ever did
constexpr uint64_t kFirstTelling = 1000;  // ticks; then ever more rarely

// State of the sampling thread: the thread that moves it away from `idle` may touch the samples.
enum Phase : uint32_t { idle, looking, ended };

struct Sampler {
  Sampler(const PythonRuntime &runtime, uint32_t hz, uint32_t share)
      : python(runtime), sampling(runtime), pace(hz, share) {}

  const PythonRuntime &python;
  PythonSampling sampling;
  Pace pace;
  uint64_t torn = 0;  // that were reported
  uint64_t detected = 0;
  uint64_t next_telling = kFirstTelling;
  uint64_t slowest = 0;  // reported interval
  bool told_of_python = false;
  uint32_t opcodes_in = 0;  // the generation of the recording that has the names
};

std::atomic<uint32_t> g_stop{0};
std::atomic<uint32_t> g_phase{idle};
std::atomic<Sampler *> g_sampler{nullptr};
std::atomic<bool> g_is_child{false};  // of a fork: its parent told of the interpreter
uint32_t g_hz = 0;
bool g_wants_opcodes = false;

uint64_t now_monotonic() {
  return clock_ns(CLOCK_MONOTONIC);
}

void pause(uint64_t ns) {
  wait_at(g_stop, 0, now_monotonic() + ns);
}

bool is_stopped() {
  return g_stop.load(std::memory_order_acquire) != 0;
}

void tell(CpuNotice what, uint64_t value, std::string_view text = {}) {
  if (value != 0) {
    own_cpu_notice(what, static_cast<int64_t>(value), text);
  }
}

void tell_counts(Sampler &sampler) {
  tell(CpuNotice::sampled, sampler.pace.take_due(), "python");
  tell(CpuNotice::missed, sampler.pace.take_missed(), "python");
  PythonReader &reader = sampler.sampling.reader();
  tell(CpuNotice::torn_detected, reader.detected() - sampler.detected, "python");
  tell(CpuNotice::torn, reader.given_up() - sampler.torn, "python");
  sampler.detected = reader.detected();
  sampler.torn = reader.given_up();
}

void write_opcodes(Sampler &sampler, const ProcessLog &log) {
  const char *line = opcode_names();
  if (line == nullptr || sampler.opcodes_in == log.generation()) {
    return;
  }
  sampler.opcodes_in = log.generation();
  while (*line != 0) {
    char *name = nullptr;
    long value = std::strtol(line, &name, 10);
    size_t size = std::strcspn(name, "\n");
    own_cpu_notice(CpuNotice::opcode, value, std::string_view(name + 1, size - 1));
    line = name + size + 1;
  }
}

void write_rest(Sampler &sampler) {
  if (ProcessLog *log = own_log()) {
    sampler.sampling.flush(*log);
    tell_counts(sampler);
  }
}

// Until there is something to look at. An interpreter that starts is there within milliseconds.
bool wait_for_python(const PythonRuntime &python) {
  for (uint32_t i = 0; !is_stopped() && !is_python_running(python); ++i) {
    if (i % 16 == 15 && only_helpers_left()) {
      return false;
    }
    pause((i < 100 ? 2 : 20) * kMillisecond);
  }
  return !is_stopped();
}

void look_once(Sampler &sampler) {
  ProcessLog *log = cpu_log();
  if (log == nullptr) {
    if (ProcessLog *before = own_log()) {
      sampler.sampling.flush(*before);
    }
    pause(5 * kMillisecond);
    sampler.pace.restart();
    return;
  }
  if (!sampler.told_of_python && !g_is_child.load()) {
    sampler.told_of_python = true;
    own_cpu_notice(CpuNotice::python, sampler.python.free_threaded, sampler.python.version);
  }
  if (g_wants_opcodes) {
    write_opcodes(sampler, *log);
  }
  sampler.sampling.tick(*log, sampler.pace.interval());
  if (sampler.pace.adapt() && sampler.pace.interval() > sampler.slowest) {
    sampler.slowest = sampler.pace.interval();
    own_cpu_notice(CpuNotice::slowed, static_cast<int64_t>(1'000'000'000 / sampler.pace.interval()),
                   "python");
  }
}

// One tick, if the process does not end now. False where it does.
bool look(Sampler &sampler, uint64_t tick) {
  uint32_t before = idle;
  if (!g_phase.compare_exchange_strong(before, looking, std::memory_order_acquire)) {
    return false;
  }
  look_once(sampler);
  if (tick >= sampler.next_telling) {
    sampler.next_telling = tick + std::max(kFirstTelling, tick / 4);
    tell_counts(sampler);
  }
  g_phase.store(idle, std::memory_order_release);
  return true;
}

// Looks until the interpreter goes down, or the process; false where what is found is not what was to be expected: then we stop.
bool sample(Sampler &sampler) {
  for (uint64_t tick = 1; sampler.pace.wait(g_stop); ++tick) {
    if (tick % 64 == 0 && (!is_python_running(sampler.python) || only_helpers_left())) {
      break;
    }
    if (!look(sampler, tick)) {
      break;
    }
    if (!sampler.sampling.makes_sense() && sampler.sampling.reader().given_up() > kMostStrange) {
      return false;
    }
  }
  return true;
}

void run(void *) {
  const PythonRuntime *python = known_python();
  if (python == nullptr) {
    return;
  }
  if (!python->is_known) {
    own_cpu_notice(CpuNotice::python_unknown, python->free_threaded, python->version);
    return;
  }
  try {
    auto share = std::min(kSharePerCpu * static_cast<uint32_t>(std::max(1l, sysconf(_SC_NPROCESSORS_ONLN))),
                          kMostShare);
    auto *sampler = new Sampler(*python, g_hz, share);
    if (g_wants_opcodes) {
      sampler->sampling.want_opcodes();
    }
    g_sampler.store(sampler);
    if (int error = memory_denied()) {
      own_cpu_notice(CpuNotice::python_denied, error, python->version);
      return;
    }
    while (wait_for_python(*python)) {
      sampler->pace.restart();
      if (!sample(*sampler)) {
        own_cpu_notice(CpuNotice::python_unknown, 0, python->version);
        return;
      }
      if (g_phase.load() == ended || only_helpers_left()) {
        return;
      }
      pause(100 * kMillisecond);  // it went down, perhaps to come again
    }
  } catch (const std::bad_alloc &) {
    g_phase.store(ended);
  }
}

// In the child of a fork, too: another thread may have held the loader's locks, which nobody lets go then.
void start() {
  if (known_python() != nullptr) {
    start_own_thread("warplens-stacks", run, nullptr);
  }
}

void begin(const CpuSettings &settings, WarplensTap &) {
  g_hz = settings.python_hz;
  g_wants_opcodes = (settings.flags & kCpuPythonOpcodes) != 0;
  start();
}

// Another recording of the program may have ended before.
void attach(const CpuSettings &settings) {
  find_python();
  g_hz = settings.python_hz;
  g_wants_opcodes = false;
  g_stop.store(0);
  g_phase.store(idle);
  start();
}

// The thread is not here, and what it had is nobody's.
void abandon() {
  g_stop.store(0);
  g_phase.store(idle);
  g_sampler.store(nullptr);
  g_is_child.store(true);
}

void end() {
  g_stop.store(1);
  wake_at(g_stop);
  Busy busy;
  // A tick takes some microseconds; where its thread does not get on, what it had is not worth to wait for.
  for (int i = 0; i < 200; ++i) {
    uint32_t before = idle;
    if (g_phase.compare_exchange_strong(before, ended, std::memory_order_acq_rel)) {
      if (Sampler *sampler = g_sampler.load()) {
        write_rest(*sampler);
      }
      return;
    }
    if (before == ended) {
      return;
    }
    timespec little{0, 100'000};
    nanosleep(&little, nullptr);
  }
}

}  // namespace

extern const CpuSource kPythonSampler{kCpuPythonSamples, begin, abandon, start, end, nullptr, attach, end};

}  // namespace warplens::agent
