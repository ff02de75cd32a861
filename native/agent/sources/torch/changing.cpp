// A fork waits while the list changes (`g_changing`), and the list does not change while a thread forks (`g_forks`), so a child never
// gets PyTorch's lock taken.
#include "changing.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "spool/system/clock.h"

namespace warplens::agent::torch {
namespace {

constexpr uint64_t kPatience = 100'000'000;  // ns that a fork waits

std::atomic<uint32_t> g_changing{0};
std::atomic<uint32_t> g_forks{0};

void before_fork() {
  g_forks.fetch_add(1);
  const uint64_t end = clock_ns(CLOCK_MONOTONIC) + kPatience;
  while (g_changing.load() != 0 && clock_ns(CLOCK_MONOTONIC) < end) {
    pause_briefly();
  }
}

void after_fork_parent() {
  g_forks.fetch_sub(1);
}

void after_fork_child() {
  g_forks.store(0);
  g_changing.store(0);
}

}  // namespace

void pause_briefly() {
  timespec pause{0, 50'000};
  syscall(SYS_nanosleep, &pause, nullptr);
}

Changing::Changing() {
  static const bool prepared [[maybe_unused]] =
      pthread_atfork(before_fork, after_fork_parent, after_fork_child) == 0;
  for (;;) {
    g_changing.store(1);
    if (g_forks.load() == 0) {
      return;
    }
    g_changing.store(0);
    pause_briefly();
  }
}

Changing::~Changing() {
  g_changing.store(0);
}

}  // namespace warplens::agent::torch
