/* Wrappers: what is done with files by their names. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>

#include "osrt.h"

/* No header has these any more. */
#define DECLARE(type, name, parameters, ...) type name parameters;
OSRT_PATHS(DECLARE)
OSRT_PATHS_BY_HAND(DECLARE)

OSRT_PATHS(OS_WRAPPER)

/* The program may have given no mode: then what is there is handed on, and not looked at. */
#define TAKE_MODE(last, mode)             \
  va_list list;                           \
  va_start(list, last);                   \
  unsigned mode = va_arg(list, unsigned); \
  va_end(list);

#define OPENED(name, arguments, how)                                                          \
  OS_CALL(int, name, arguments, MINUS)                                                        \
  os_forget(result);                                                                          \
  OS_TELL(name, FILE, MINUS, .fd = result, .text = path, .object = (uint64_t)(unsigned)(how)) \
  return result;

#define OPEN(name)                                     \
  WRAPPER int name(const char *path, int flags, ...) { \
    TAKE_MODE(flags, mode)                             \
    OPENED(name, (path, flags, mode), flags)           \
  }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name)                                          \
  WRAPPER int name(int at, const char *path, int flags, ...) { \
    TAKE_MODE(flags, mode)                                     \
    OPENED(name, (at, path, flags, mode), flags)               \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

/* What _FORTIFY_SOURCE makes of open, where it sees no mode. */
#define OPEN_2(name)                              \
  WRAPPER int name(const char *path, int flags) { \
    OPENED(name, (path, flags), flags)            \
  }
OPEN_2(__open_2)
OPEN_2(__open64_2)

#define OPEN_AT_2(name)                                   \
  WRAPPER int name(int at, const char *path, int flags) { \
    OPENED(name, (at, path, flags), flags)                \
  }
OPEN_AT_2(__openat_2)
OPEN_AT_2(__openat64_2)

WRAPPER int creat(const char *path, mode_t mode){OPENED(creat, (path, mode), O_CREAT | O_WRONLY | O_TRUNC)}

WRAPPER int creat64(const char *path, mode_t mode) {
  OPENED(creat64, (path, mode), O_CREAT | O_WRONLY | O_TRUNC)
}
