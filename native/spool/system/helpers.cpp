// Ends the process when only the agent's threads are left.
// It compares the number of the agent's threads with the kernel's number for the process.
#include "helpers.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace warplens {
namespace {

std::atomic<int> g_helpers{0};

}  // namespace

HelperThread::HelperThread() {
  g_helpers.fetch_add(1);
}

HelperThread::~HelperThread() {
  g_helpers.fetch_sub(1);
}

bool only_helpers_left() {
  char path[64];
  char text[512];
  std::snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
  if (fd >= 0) {
    close(fd);
  }
  if (size <= 0) {
    return false;
  }
  text[size] = '\0';
  const char *at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == '\0' || at[2] != 'Z') {
    return false;
  }
  ++at;
  for (int field = 3; field < 20 && at != nullptr; ++field) {
    at = std::strchr(at + 1, ' ');
  }
  // The main thread is counted until the process ends.
  return at != nullptr && std::strtol(at, nullptr, 10) <= g_helpers.load() + 1;
}

void forget_helpers() {
  g_helpers.store(0);
}

}  // namespace warplens
