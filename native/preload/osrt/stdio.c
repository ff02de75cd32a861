/* Wrappers: files of stdio. */
#define _GNU_SOURCE
/* glibc's headers define getline inline where this is not set; this file defines it. */
#ifndef __NO_INLINE__
#define __NO_INLINE__ 1
#endif
#include <errno.h>

#include "osrt.h"

#define DECLARE(type, name, parameters, ...) type(name) parameters;
OSRT_STDIO(DECLARE)

/* -1 where there is none. Keeps errno. */
int os_number(FILE *file) {
  int saved = errno;
  int fd = file != NULL ? fileno(file) : -1;
  errno = saved;
  return fd;
}

OSRT_STDIO(OS_WRAPPER)

#define OPEN(name)                                         \
  WRAPPER FILE *name(const char *path, const char *mode) { \
    OS_CALL(FILE *, name, (path, mode), POINTER)           \
    int fd = os_number(result);                            \
    os_forget(fd);                                         \
    OS_TELL(name, FILE, POINTER, .fd = fd, .text = path)   \
    return result;                                         \
  }
OPEN(fopen)
OPEN(fopen64)

#define REOPEN(name)                                                   \
  WRAPPER FILE *name(const char *path, const char *mode, FILE *file) { \
    os_forget(os_number(file));                                        \
    OS_CALL(FILE *, name, (path, mode, file), POINTER)                 \
    int fd = os_number(result);                                        \
    os_forget(fd);                                                     \
    OS_TELL(name, FILE, POINTER, .fd = fd, .text = path)               \
    return result;                                                     \
  }
REOPEN(freopen)
REOPEN(freopen64)

WRAPPER int fclose(FILE *file) {
  int fd = os_number(file);
  OS_CALL(int, fclose, (file), MINUS)
  OS_TELL(fclose, FILE, MINUS, .fd = fd, .flags = WARPLENS_OS_FILE | WARPLENS_OS_CLOSED)
  os_forget(fd);
  return result;
}

WRAPPER void flockfile(FILE *file) {
  OS_REAL(real, flockfile, MINUS)
  const uint64_t start_ = os_begin();
  real(file);
  const uint64_t end_ = start_ != 0 ? os_counter() : 0;
  const int result = 0;
  OS_TELL(flockfile, CALL, NEVER, .fd = os_number(file))
}
