// Reads memory through the kernel: process_vm_readv, or /proc/self/mem where a sandbox forbids that.
#include "memory.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "agent/hooks/own_file.h"

namespace warplens::agent {
namespace {

constexpr int kNone = -1;
std::atomic<pid_t> g_process{0};
std::atomic<bool> g_by_file{false};
std::atomic<int> g_file{kNone};

pid_t process() {
  pid_t known = g_process.load(std::memory_order_relaxed);
  if (known == 0) {
    known = static_cast<pid_t>(syscall(SYS_getpid));
    g_process.store(known, std::memory_order_relaxed);
  }
  return known;
}

// Direct system calls: another tool may wrap the C library's functions, and record them.
ssize_t read_remote(const iovec *to, const iovec *from, size_t count) {
  return syscall(SYS_process_vm_readv, process(), to, count, from, count, 0);
}

int file() {
  int known = g_file.load(std::memory_order_acquire);
  if (known >= 0) {
    return known;
  }
  int opened = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/mem", O_RDONLY | O_CLOEXEC, 0));
  if (opened < 0) {
    return kNone;
  }
  opened = move_up(opened);
  if (!g_file.compare_exchange_strong(known, opened)) {
    syscall(SYS_close, opened);
    return known;
  }
  return opened;
}

bool read_file(void *to, uintptr_t from, size_t size) {
  int from_file = file();
  return from_file >= 0 && syscall(SYS_pread64, from_file, to, size, from) == static_cast<ssize_t>(size);
}

}  // namespace

bool copy_memory(void *to, uintptr_t from, size_t size) {
  if (size == 0) {
    return true;
  }
  if (from < 4096) {
    return false;
  }
  if (g_by_file.load(std::memory_order_relaxed)) {
    return read_file(to, from, size);
  }
  iovec local{to, size}, remote{reinterpret_cast<void *>(from), size};
  return read_remote(&local, &remote, 1) == static_cast<ssize_t>(size);
}

size_t copy_pieces(const Piece *pieces, size_t count) {
  constexpr size_t kMost = 64;
  size_t done = 0;
  if (g_by_file.load(std::memory_order_relaxed)) {
    while (done < count && copy_memory(pieces[done].to, pieces[done].from, pieces[done].size)) {
      ++done;
    }
    return done;
  }
  while (done < count) {
    iovec to[kMost], from[kMost];
    size_t in_call = count - done < kMost ? count - done : kMost;
    for (size_t i = 0; i < in_call; ++i) {
      const Piece &piece = pieces[done + i];
      to[i] = {piece.to, piece.size};
      from[i] = {reinterpret_cast<void *>(piece.from), piece.size};
    }
    ssize_t bytes = read_remote(to, from, in_call);
    size_t complete = 0;
    for (ssize_t left = bytes; complete < in_call && left >= static_cast<ssize_t>(to[complete].iov_len);) {
      left -= static_cast<ssize_t>(to[complete++].iov_len);
    }
    done += complete;
    if (complete < in_call) {
      break;
    }
  }
  return done;
}

int memory_denied() {
  static const int known = 1;
  int read = 0;
  iovec local{&read, sizeof(read)}, remote{const_cast<int *>(&known), sizeof(known)};
  g_by_file.store(false);
  if (read_remote(&local, &remote, 1) == static_cast<ssize_t>(sizeof(read))) {
    return 0;
  }
  int error = errno;
  if (!read_file(&read, reinterpret_cast<uintptr_t>(&known), sizeof(known))) {
    return error != 0 ? error : EPERM;
  }
  g_by_file.store(true);
  return 0;
}

void renew_memory() {
  g_process.store(0);
  if (int inherited = g_file.exchange(kNone); inherited >= 0) {
    syscall(SYS_close, inherited);  // it is the parent's memory
  }
}

}  // namespace warplens::agent
