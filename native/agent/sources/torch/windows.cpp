// Adds PyTorch's callbacks when a window opens, and removes them when it closes.
// PyTorch guards its list of callbacks with a lock. Each operator copies the list when it begins, so
// it ends with the callbacks that it began with.
//
// The protocol. One thread of the agent sleeps on the gate, and only that thread changes the list: a
// thread of the program that opens a window may be in a signal handler, with PyTorch's lock taken.
// The opener waits until `g_followed` is the gate's value, but not for long. changing.h keeps forks apart.
#include "windows.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "agent/hooks/cpu.h"
#include "agent/python/sampling/pace.h"
#include "agent/session.h"
#include "changing.h"
#include "ops.h"
#include "spool/system/helpers.h"

namespace warplens::agent::torch {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kPatience = 100 * kMillisecond;  // of a thread that opens a window
constexpr long kIdleSeconds = 1;

std::atomic<uint32_t> g_followed{0};  // the gate for which the list is right
std::atomic<bool> g_follows{false};
std::atomic<bool> g_stop{false};

// The gate's futex is shared with other processes.
void wait_at_gate(const std::atomic<uint32_t> &gate, uint32_t value) {
  timespec time{kIdleSeconds, 0};
  syscall(SYS_futex, &gate, FUTEX_WAIT, value, &time, nullptr, 0);
}

void follow(void *) {
  const std::atomic<uint32_t> &gate = control_page()->gate;
  while (!g_stop.load() && !only_helpers_left()) {
    const uint32_t value = gate.load(std::memory_order_acquire);
    if (value != g_followed.load(std::memory_order_relaxed)) {
      Changing changing;
      listen_to_ops(value % 2 == 1);
      g_followed.store(value, std::memory_order_release);
    }
    wake_at(g_followed);
    wait_at_gate(gate, value);
  }
  g_follows.store(false);
}

}  // namespace

void follow_windows() {
  g_stop.store(false);
  g_follows.store(true);
  if (!start_own_thread("warplens-torch", follow, nullptr)) {
    g_follows.store(false);
  }
}

void wait_for_callbacks() {
  const uint32_t gate = control_page()->gate.load(std::memory_order_acquire);
  const uint64_t end = clock_ns(CLOCK_MONOTONIC) + kPatience;
  uint32_t followed = 0;
  while (gate % 2 == 1 && g_follows.load() &&
         static_cast<int32_t>((followed = g_followed.load(std::memory_order_acquire)) - gate) < 0 &&
         clock_ns(CLOCK_MONOTONIC) < end) {
    wait_at(g_followed, followed, end);
  }
}

void stop_following() {
  g_stop.store(true);
  // It may be about to sleep.
  for (int i = 0; i < 20 && g_follows.load(); ++i) {
    syscall(SYS_futex, &control_page()->gate, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    pause_briefly();
  }
}

void remove_callbacks() {
  const uint64_t end = clock_ns(CLOCK_MONOTONIC) + kPatience;
  while (g_follows.load() && clock_ns(CLOCK_MONOTONIC) < end) {
    pause_briefly();
  }
  if (g_follows.load()) {
    return;  // it may be changing the list
  }
  Changing changing;
  listen_to_ops(false);
  g_followed.store(0);
}

}  // namespace warplens::agent::torch
