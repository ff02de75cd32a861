// Records which thread holds the GIL and which wait for it.
// It sees the GIL's condition variables through the larger stub. Brief holds and waits are only
// summed up.
//
// The protocol. The hook runs on the thread that takes, releases or waits for the lock, and writes only
// to that thread's Thread. So no two threads write one field; `held_since` and `waits_since` are
// atomic because the thread that ends the recording reads them (end_gil). `gate` is the window's gate
// at the begin: an interval counts only if that window is still open at its end.
#include <algorithm>
#include <cerrno>

#include "agent/python/memory/interpreters.h"
#include "agent/python/memory/memory.h"
#include "agent/session.h"
#include "parts.h"
#include "threads.h"

namespace warplens::agent::python {
namespace {

constexpr uint32_t kMostInterpreters = 64;
constexpr uint64_t kLongestSum = 100'000'000;  // a record of brief ones is not of more time than this

WarplensTap *g_tap = nullptr;
uint64_t g_threshold = 0;

void write(const Thread &thread, GilAction action, uint64_t start, uint64_t end) {
  Lane *to = lane();
  if (to == nullptr) {
    return;
  }
  GilRecord record{};
  record.head = {RecordType::gil, 0, static_cast<uint16_t>(action), 0};
  record.start = start;
  record.end = end;
  record.tid = thread.number;
  record.interpreter = thread.interpreter;
  if (action == GilAction::brief) {
    record.held_ns = thread.held_ns;
    record.waited_ns = thread.waited_ns;
    record.holds = thread.holds;
    record.waits = thread.waits;
  }
  to->append(record, start);
}

void flush(Thread &thread) {
  if (thread.brief_start != 0) {
    write(thread, GilAction::brief, thread.brief_start, thread.brief_end);
    thread.brief_start = 0;
    thread.held_ns = thread.waited_ns = 0;
    thread.holds = thread.waits = 0;
  }
}

void note(Thread &thread, GilAction action, uint64_t start, uint64_t end) {
  uint64_t took = std::max(end, start) - start;
  if (took >= g_threshold) [[unlikely]] {
    flush(thread);
    write(thread, action, start, end);
    return;
  }
  bool holds = action == GilAction::hold;
  (holds ? thread.held_ns : thread.waited_ns) += took;
  ++(holds ? thread.holds : thread.waits);
  if (thread.brief_start == 0) {
    thread.brief_start = start;
  }
  thread.brief_end = end;
  if (end - thread.brief_start > kLongestSum) [[unlikely]] {
    flush(thread);
  }
}

void take(Thread &thread, uint32_t interpreter, uint64_t time) {
  uint32_t gate = gate_now();
  uint64_t since = thread.waits_since.load(std::memory_order_relaxed);
  thread.interpreter = interpreter;
  if (since != 0) [[unlikely]] {
    thread.waits_since.store(0, std::memory_order_relaxed);
    if (was_open(thread.gate, gate)) {
      note(thread, GilAction::wait, since, time);
    }
  }
  thread.gate = gate;
  thread.held_since.store(time, std::memory_order_relaxed);
}

void let_go(Thread &thread, uint64_t time) {
  uint64_t since = thread.held_since.load(std::memory_order_relaxed);
  thread.held_since.store(0, std::memory_order_relaxed);
  if (since != 0 && was_open(thread.gate, gate_now())) {
    note(thread, GilAction::hold, since, time);
  }
}

void on_gil(uint32_t interpreter, uint32_t what) {
  Thread *thread = this_thread();
  if (thread == nullptr) [[unlikely]] {
    return;
  }
  int saved = errno;
  uint64_t time = now();
  if (what == WARPLENS_GIL_TAKEN) {
    take(*thread, interpreter, time);
  } else if (what == WARPLENS_GIL_RELEASED) {
    let_go(*thread, time);
  } else if (thread->waits_since.load(std::memory_order_relaxed) == 0) {
    thread->gate = gate_now();
    thread->interpreter = interpreter;
    thread->waits_since.store(time, std::memory_order_relaxed);
  }
  errno = saved;
}

// Its lock; all zero where that is not to be found, or the thread that is in it does not hold it.
PythonInterpreter gil_of(const Interpreter &interpreter) {
  const PythonRuntime *python = find_python();
  PythonInterpreter all[kMostInterpreters];
  if (python == nullptr || !python->is_known) {
    return {};
  }
  uint32_t count = python_interpreters(*python, all, kMostInterpreters);
  for (uint32_t i = 0; i < count; ++i) {
    int locked = 0;
    if (all[i].address == reinterpret_cast<uintptr_t>(interpreter.state) && all[i].gil != 0 &&
        copy_memory(locked, all[i].gil + python->at.gil_locked) && locked == 1) {
      return all[i];
    }
  }
  return {};
}

}  // namespace

void begin_gil(WarplensTap &tap, uint32_t threshold_ns) {
  g_tap = &tap;
  g_threshold = threshold_ns;
  tap.gil = on_gil;
}

bool install_gil(Interpreter &interpreter) {
  PythonInterpreter gil = gil_of(interpreter);
  if (gil.cond == 0 && g_python.free_threaded) {
    return false;  // it is off, and stays so unless the program imports an extension that needs it
  }
  if (gil.cond == 0) {
    cpu_notice(CpuNotice::gil_unknown, 0, g_python.Py_GetVersion());
    return false;
  }
  // An interpreter may share the lock of another.
  uint32_t count = __atomic_load_n(&g_tap->gils, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count; ++i) {
    if (g_tap->gil_cond[i] == reinterpret_cast<const void *>(gil.cond)) {
      return true;
    }
  }
  if (count == WARPLENS_MOST_GILS) {
    cpu_notice(CpuNotice::bootstrap, 0, "more interpreters have a separate GIL than the agent can follow");
    return false;
  }
  g_tap->gil_cond[count] = reinterpret_cast<const void *>(gil.cond);
  g_tap->gil_switch[count] = reinterpret_cast<const void *>(gil.switch_on);
  __atomic_store_n(&g_tap->gils, count + 1, __ATOMIC_RELEASE);
  if (Thread *thread = this_thread()) {
    take(*thread, count, now());
  }
  __atomic_fetch_or(&g_tap->on, WARPLENS_TAP_GIL, __ATOMIC_RELEASE);
  return true;
}

void leave_gil(Thread &thread) {
  flush(thread);
}

void begin_gil_child() {
  // The thread that forked holds the lock, or no thread does.
  if (t_python != nullptr) {
    t_python->gate = gate_now();
    t_python->held_since.store(now(), std::memory_order_relaxed);
  }
}

void end_gil() {
  uint64_t end = now();
  uint32_t gate = gate_now();
  for_each_thread([&](Thread &thread) {
    if (!was_open(thread.gate, gate)) {
      flush(thread);
      return;
    }
    if (uint64_t since = thread.held_since.load(std::memory_order_relaxed)) {
      write(thread, GilAction::hold, since, end);
    }
    if (uint64_t since = thread.waits_since.load(std::memory_order_relaxed)) {
      write(thread, GilAction::wait, since, end);
    }
    flush(thread);
  });
}

}  // namespace warplens::agent::python
