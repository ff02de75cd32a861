// Opens perf events by system call: the C library has no function for it.
#include "ring.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "agent/hooks/own_file.h"

namespace warplens::agent {
namespace {

constexpr size_t kPageBytes = 4096;

int open_event(perf_event_attr attributes, int tid, int cpu) {
  long fd = syscall(SYS_perf_event_open, &attributes, tid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  return fd < 0 ? -1 : move_up(static_cast<int>(fd));
}

}  // namespace

int PerfRing::open(const perf_event_attr &attributes, int tid, int cpu, size_t pages, size_t least) {
  fd_ = open_event(attributes, tid, cpu);
  if (fd_ < 0) {
    return errno;
  }
  cpu_ = cpu;
  void *at = MAP_FAILED;
  for (; pages >= least; pages /= 2) {
    at = mmap(nullptr, (pages + 1) * kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    if (at != MAP_FAILED || (errno != EPERM && errno != ENOMEM && errno != EAGAIN)) {
      break;
    }
  }
  if (at == MAP_FAILED) {
    int error = errno;
    close();
    return error;
  }
  page_ = static_cast<perf_event_mmap_page *>(at);
  size_ = pages * kPageBytes;
  return 0;
}

int PerfRing::join(const perf_event_attr &attributes, int tid) const {
  int other = open_event(attributes, tid, cpu_);
  if (other < 0) {
    return errno;
  }
  if (ioctl(other, PERF_EVENT_IOC_SET_OUTPUT, fd_) != 0) {
    int error = errno;
    ::close(other);
    return error;
  }
  return 0;
}

void PerfRing::close() {
  if (page_ != nullptr) {
    munmap(page_, size_ + kPageBytes);
  }
  abandon();
}

void PerfRing::take_over(PerfRing &other) {
  fd_ = std::exchange(other.fd_, -1);
  cpu_ = other.cpu_;
  page_ = std::exchange(other.page_, nullptr);
  size_ = other.size_;
}

void PerfRing::abandon() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
  page_ = nullptr;
  fd_ = -1;
}

void PerfRing::enable(bool on) {
  if (fd_ >= 0) {
    ioctl(fd_, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
  }
}

const perf_event_header *PerfRing::next(uint64_t tail, uint64_t head) {
  const char *data = reinterpret_cast<const char *>(page_) + kPageBytes;
  // Records are multiples of 8 bytes: a header is never cut.
  const size_t place = tail % size_;
  const auto *record = reinterpret_cast<const perf_event_header *>(data + place);
  const size_t size = record->size;
  if (size < sizeof(*record) || size % 8 != 0 || size > head - tail) {
    return nullptr;
  }
  if (place + size <= size_) {
    return record;
  }
  joined_.resize(size);
  std::memcpy(joined_.data(), record, size_ - place);
  std::memcpy(joined_.data() + (size_ - place), data, size - (size_ - place));
  return reinterpret_cast<const perf_event_header *>(joined_.data());
}

}  // namespace warplens::agent
