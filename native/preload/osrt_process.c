/* Wrappers: processes and threads. Not vfork: its child would return from our frame, and leave it to its parent in pieces. */
#define _GNU_SOURCE
#include <errno.h>

#include "osrt.h"

#define DECLARE(type, name, parameters, ...) type name parameters;
OSRT_PROCESS(DECLARE)
OSRT_PROCESS_BY_HAND(DECLARE)

OSRT_PROCESS(OS_WRAPPER)

/* Told of in the parent only. */
WRAPPER pid_t fork(void) {
  OS_CALL(pid_t, fork, (), MINUS)
  if (result == 0) {
    return result;
  }
  OS_TELL(fork, CALL, MINUS)
  return result;
}

WRAPPER int forkpty(int *terminal, char *name, const struct termios *how, const struct winsize *size) {
  OS_CALL(int, forkpty, (terminal, name, how, size), MINUS)
  if (result == 0) {
    return result;
  }
  os_forget(result > 0 ? *terminal : -1);
  OS_TELL(forkpty, CALL, MINUS)
  return result;
}

WRAPPER void sync(void) {
  OS_REAL(real, sync, MINUS)
  const uint64_t start_ = os_begin();
  real();
  const uint64_t end_ = start_ != 0 ? os_counter() : 0;
  const int result = 0;
  OS_TELL(sync, CALL, NEVER)
}
