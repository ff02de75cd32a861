// Opens files of the agent with high descriptors.
// The program's own files get the lowest numbers, as without the agent.
#include "own_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

namespace warplens::agent {
namespace {

constexpr rlim_t kHigh = 900;  // below what select() can take

}  // namespace

// Direct system calls: another tool may wrap the C library's functions, and record them.
int move_up(int fd) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  rlim_t from = std::min(kHigh, limit.rlim_cur - limit.rlim_cur / 4);
  long moved = syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, from);
  if (moved < 0) {
    return fd;
  }
  syscall(SYS_close, fd);
  return static_cast<int>(moved);
}

}  // namespace warplens::agent
