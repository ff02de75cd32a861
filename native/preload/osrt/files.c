/* Wrappers: functions on descriptors. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>

#include "osrt.h"

OSRT_FILES(OS_WRAPPER)

WRAPPER int close(int fd) {
  OS_CALL(int, close, (fd), MINUS)
  OS_TELL(close, FILE, MINUS, .fd = fd, .flags = WARPLENS_OS_FILE | WARPLENS_OS_CLOSED)
  os_forget(fd);
  return result;
}

WRAPPER int close_range(unsigned first, unsigned last, int flags) {
  OS_CALL(int, close_range, (first, last, flags), MINUS)
  OS_TELL(close_range, CALL, MINUS)
  os_forget_from(first, last);
  return result;
}

/* In glibc since 2.34: nobody calls it where it lacks. */
WRAPPER void closefrom(int first) {
  OS_REAL(real, closefrom, MINUS)
  real(first);
  os_forget_from(first > 0 ? (unsigned)first : 0, ~0u);
}

WRAPPER int dup(int fd) {
  OS_CALL(int, dup, (fd), MINUS)
  os_forget(result);
  OS_TELL(dup, CALL, MINUS, .fd = fd)
  return result;
}

WRAPPER int dup2(int fd, int to) {
  OS_CALL(int, dup2, (fd, to), MINUS)
  os_forget(result);
  OS_TELL(dup2, CALL, MINUS, .fd = fd)
  return result;
}

WRAPPER int dup3(int fd, int to, int flags) {
  OS_CALL(int, dup3, (fd, to, flags), MINUS)
  os_forget(result);
  OS_TELL(dup3, CALL, MINUS, .fd = fd)
  return result;
}

/* Whatever follows is passed on as it came: a word. */
#define TAKE_WORD(last, word)                       \
  va_list list;                                     \
  va_start(list, last);                             \
  unsigned long word = va_arg(list, unsigned long); \
  va_end(list);

#define FCNTL(name)                                                          \
  WRAPPER int name(int fd, int command, ...) {                               \
    TAKE_WORD(command, word)                                                 \
    OS_CALL(int, name, (fd, command, word), MINUS)                           \
    if (command == F_DUPFD || command == F_DUPFD_CLOEXEC) os_forget(result); \
    OS_TELL(name, CALL, MINUS, .fd = fd, .object = (uint64_t)command)        \
    return result;                                                           \
  }
FCNTL(fcntl)
FCNTL(fcntl64)

WRAPPER int ioctl(int fd, unsigned long request, ...) {
  TAKE_WORD(request, word)
  OS_CALL(int, ioctl, (fd, request, word), MINUS)
  OS_TELL(ioctl, CALL, MINUS, .fd = fd, .object = request)
  return result;
}

WRAPPER int pipe(int ends[2]) {
  OS_CALL(int, pipe, (ends), MINUS)
  os_forget_pair(result, ends);
  OS_TELL(pipe, CALL, MINUS)
  return result;
}

WRAPPER int pipe2(int ends[2], int flags) {
  OS_CALL(int, pipe2, (ends, flags), MINUS)
  os_forget_pair(result, ends);
  OS_TELL(pipe2, CALL, MINUS)
  return result;
}
