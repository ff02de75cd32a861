// Finds the system id of a thread from its pthread_t.
// The number lies in the C library's thread structure; its offset is found in our own thread.
#include "handles.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "memory.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kNowhere = 0xffffffff;
std::atomic<uint32_t> g_offset{0};  // 0 = not looked for so far

uint32_t find_offset() {
  uint32_t known = g_offset.load(std::memory_order_relaxed);
  if (known != 0) {
    return known;
  }
  char own[1536];
  auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  known = kNowhere;
  if (copy_memory(own, static_cast<uintptr_t>(pthread_self()), sizeof(own))) {
    for (uint32_t offset = 8; offset + 4 <= sizeof(own) && known == kNowhere; offset += 4) {
      if (std::memcmp(own + offset, &tid, sizeof(tid)) == 0) {
        known = offset;
      }
    }
  }
  g_offset.store(known, std::memory_order_relaxed);
  return known;
}

}  // namespace

uint32_t tid_of_handle(uintptr_t handle) {
  uint32_t offset = find_offset();
  uint32_t tid = 0;
  if (handle == 0 || offset == kNowhere || !copy_memory(tid, handle + offset) || thread_cpu_ns(tid) < 0) {
    return 0;
  }
  return tid;
}

int64_t thread_cpu_ns(uint32_t tid) {
  if (tid == 0) {
    return -1;
  }
  timespec time;
  auto clock = static_cast<clockid_t>(~tid << 3 | 6);  // the scheduler's clock of one thread
  if (syscall(SYS_clock_gettime, clock, &time) != 0) {
    return -1;
  }
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace warplens::agent
