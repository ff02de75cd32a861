// The recorded process.
// It is set once, in an observer, which does nothing else.
#include "subject.h"

#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace warplens {
namespace {

pid_t g_watched = 0;
int g_left_fd = -1;
std::atomic<bool> g_left{false};

}  // namespace

pid_t subject() {
  return g_watched != 0 ? g_watched : static_cast<pid_t>(syscall(SYS_getpid));
}

void watch_subject(pid_t pid) {
  g_watched = pid;
  g_left_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

bool is_outside() {
  return g_watched != 0;
}

std::string subject_path(const char *name) {
  return (is_outside() ? "/proc/" + std::to_string(g_watched) : std::string("/proc/self")) + "/" + name;
}

void note_subject_left() {
  if (is_outside() && !g_left.exchange(true)) {
    const uint64_t one = 1;
    static_cast<void>(!write(g_left_fd, &one, sizeof(one)));
  }
}

bool has_subject_left() {
  return g_left.load(std::memory_order_relaxed);
}

int subject_left_fd() {
  return g_left_fd;
}

}  // namespace warplens
