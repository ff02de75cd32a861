// Reads names of threads from /proc.
#include "threads.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "warplens/cuda_records.h"

namespace warplens::agent {
namespace {

constexpr size_t kLongestName = 64;  // kernel threads have names longer than 15 bytes

// Plain system calls: this may be a thread of the program, which can be cancelled in the functions of the C library.
size_t read_name(uint32_t tid, char (&name)[kLongestName]) {
  char path[48];
  std::snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tid);
  long fd = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  long size = syscall(SYS_read, fd, name, sizeof(name));
  syscall(SYS_close, fd);
  if (size > 0 && name[size - 1] == '\n') {
    --size;
  }
  return size > 0 ? static_cast<size_t>(size) : 0;
}

}  // namespace

void CudaThreads::begin() {
  last_ = count_ = 0;
  std::memset(seen_, 0, sizeof(seen_));
}

bool CudaThreads::add(uint32_t tid) {
  uint32_t place = tid * 0x9e3779b1u >> 20;
  static_assert(kPlaces == 1 << 12);
  for (; seen_[place] != 0; place = (place + 1) % kPlaces) {
    if (seen_[place] == tid) {
      return false;
    }
  }
  if (tid == 0 || count_ == kMost) {
    return false;
  }
  ++count_;
  seen_[place] = tid;
  return true;
}

void CudaThreads::write_name(ProcessLog &log, WideLog::Writer &writer, uint32_t tid, uint64_t start) {
  char name[kLongestName];
  size_t size = read_name(tid, name);
  uint32_t number = size != 0 ? log.intern({name, size}) : 0;
  if (number != 0) {
    writer.append(CudaThreadRecord{{RecordType::cuda_thread, 0, 0, number}, start, tid, 0}, start);
  }
}

}  // namespace warplens::agent
