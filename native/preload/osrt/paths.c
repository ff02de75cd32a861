/* Wrappers: functions on files by their names. */
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

#define OPENED(called, name, arguments, how)                                                    \
  OS_CALL(int, name, arguments, MINUS)                                                          \
  os_forget(result);                                                                            \
  OS_TELL(called, FILE, MINUS, .fd = result, .text = path, .object = (uint64_t)(unsigned)(how)) \
  return result;

#define OPEN(name)                                     \
  WRAPPER int name(const char *path, int flags, ...) { \
    TAKE_MODE(flags, mode)                             \
    OPENED(name, name, (path, flags, mode), flags)     \
  }
OPEN(open)
OPEN(open64)

#define OPEN_AT(name)                                          \
  WRAPPER int name(int at, const char *path, int flags, ...) { \
    TAKE_MODE(flags, mode)                                     \
    OPENED(name, name, (at, path, flags, mode), flags)         \
  }
OPEN_AT(openat)
OPEN_AT(openat64)

/* What _FORTIFY_SOURCE makes of open, where it sees no mode. */
#define OPEN_2(name, called)                      \
  WRAPPER int name(const char *path, int flags) { \
    OPENED(called, name, (path, flags), flags)    \
  }
OPEN_2(__open_2, open)
OPEN_2(__open64_2, open64)

#define OPEN_AT_2(name, called)                           \
  WRAPPER int name(int at, const char *path, int flags) { \
    OPENED(called, name, (at, path, flags), flags)        \
  }
OPEN_AT_2(__openat_2, openat)
OPEN_AT_2(__openat64_2, openat64)

WRAPPER int creat(const char *path,
                  mode_t mode){OPENED(creat, creat, (path, mode), O_CREAT | O_WRONLY | O_TRUNC)}

WRAPPER int creat64(const char *path, mode_t mode) {
  OPENED(creat64, creat64, (path, mode), O_CREAT | O_WRONLY | O_TRUNC)
}
