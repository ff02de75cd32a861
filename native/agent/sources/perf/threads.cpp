// Lists the threads of the recorded process from /proc.
#include "threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "spool/system/subject.h"

namespace warplens::agent {
namespace {

std::string read_line(uint32_t tid, const char *file) {
  char text[512];
  std::string path = subject_path(("task/" + std::to_string(tid) + "/" + file).c_str());
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text));
  if (fd >= 0) {
    close(fd);
  }
  std::string line(text, size > 0 ? static_cast<size_t>(size) : 0);
  return line.substr(0, line.find('\n'));
}

// A thread that could run and waits for a CPU is called running, too.
ThreadState state_of(uint32_t tid) {
  std::string stat = read_line(tid, "stat");
  size_t at = stat.rfind(')');
  return at != std::string::npos && at + 2 < stat.size() && stat[at + 2] == 'R' ? ThreadState::running
                                                                                : ThreadState::blocked;
}

}  // namespace

std::vector<SubjectThread> subject_threads(int main_tid) {
  if (!is_outside()) {
    return {{static_cast<uint32_t>(main_tid), ThreadState::running, {}}};
  }
  std::vector<SubjectThread> threads;
  const std::string process = read_line(static_cast<uint32_t>(main_tid), "comm");
  if (DIR *folder = opendir(subject_path("task").c_str()); folder != nullptr) {
    while (const dirent *entry = readdir(folder)) {
      if (auto tid = static_cast<uint32_t>(std::strtoul(entry->d_name, nullptr, 10)); tid != 0) {
        std::string name = read_line(tid, "comm");
        threads.push_back({tid, state_of(tid), name != process ? name : ""});
      }
    }
    closedir(folder);
  }
  return threads;
}

}  // namespace warplens::agent
