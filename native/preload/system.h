/* System calls that leave errno alone and are no cancellation points: a program must not notice ours. */
#ifndef WARPLENS_PRELOAD_SYSTEM_H
#define WARPLENS_PRELOAD_SYSTEM_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The result, or a negative errno. */
static inline long system_call(long number, long a, long b, long c, long d) {
  int saved = errno;
  long result = syscall(number, a, b, c, d);
  if (result == -1) {
    result = -errno;
  }
  errno = saved;
  return result;
}

static inline long system_open(int directory, const char *path, int flags) {
  return system_call(SYS_openat, directory, (long)path, flags, 0);
}

static inline void system_close(int file) {
  system_call(SYS_close, file, 0, 0, 0);
}

static inline long system_pread(int file, void *out, size_t size, off_t at) {
  return system_call(SYS_pread64, file, (long)out, (long)size, at);
}

#endif
