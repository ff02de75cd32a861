// Reads /proc/…/task.
#include "threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "spool/system/subject.h"

namespace warplens::agent {
namespace {

// A thread that could run and waits for a CPU is called running, too.
ThreadState state_of(uint32_t tid) {
  char text[512];
  int fd =
      open(subject_path(("task/" + std::to_string(tid) + "/stat").c_str()).c_str(), O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
  if (fd >= 0) {
    close(fd);
  }
  text[size > 0 ? size : 0] = '\0';
  const char *at = std::strrchr(text, ')');
  return at != nullptr && at[1] != '\0' && at[2] == 'R' ? ThreadState::running : ThreadState::blocked;
}

}  // namespace

std::vector<SubjectThread> subject_threads(int main_tid) {
  if (!is_outside()) {
    return {{static_cast<uint32_t>(main_tid), ThreadState::running}};
  }
  std::vector<SubjectThread> threads;
  if (DIR *folder = opendir(subject_path("task").c_str()); folder != nullptr) {
    while (const dirent *entry = readdir(folder)) {
      if (auto tid = static_cast<uint32_t>(std::strtoul(entry->d_name, nullptr, 10)); tid != 0) {
        threads.push_back({tid, state_of(tid)});
      }
    }
    closedir(folder);
  }
  return threads;
}

}  // namespace warplens::agent
