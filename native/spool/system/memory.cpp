// Maps anonymous memory.
#include "memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "busy.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace warplens {

__thread volatile bool t_busy = false;

namespace {

constexpr int kOwn = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

void *map_memory(size_t size) {
  int saved = errno;
  void *at = mmap(nullptr, size, PROT_READ | PROT_WRITE, kOwn, -1, 0);
  errno = saved;
  return at == MAP_FAILED ? nullptr : at;
}

void unmap_memory(void *at, size_t size) {
  int saved = errno;
  munmap(at, size);
  errno = saved;
}

void forget_mapping(void *at, size_t size) {
  int saved = errno;
  // By number: the thread sanitizer takes mmap for a write to the pages, and there may be late writers.
  syscall(SYS_mmap, at, size, PROT_READ | PROT_WRITE, kOwn | MAP_FIXED, -1, 0);
  errno = saved;
}

void fill_hole(void *at, size_t size) {
  int saved = errno;
  void *got = mmap(at, size, PROT_READ | PROT_WRITE, kOwn | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != MAP_FAILED && got != at) {  // a kernel that does not know the flag, and something is there
    munmap(got, size);
  }
  errno = saved;
}

}  // namespace warplens
