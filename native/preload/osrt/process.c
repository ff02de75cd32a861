/* Wrappers: processes and threads. Not vfork: its child would return from our frame, and leave it to its parent in pieces. */
#define _GNU_SOURCE
#include <errno.h>

#include "osrt.h"

#define DECLARE(type, name, parameters, ...) type name parameters;
OSRT_PROCESS(DECLARE)
OSRT_PROCESS_BY_HAND(DECLARE)

OSRT_PROCESS(OS_WRAPPER)

char os_many_threads;

WRAPPER int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *),
                           void *argument) {
  if (!os_many_threads) {
    os_many_threads = 1;
  }
  OS_CALL(int, pthread_create, (thread, how, body, argument), NUMBER)
  OS_TELL(pthread_create, CALL, NUMBER, .object = (uint64_t)(uintptr_t)body)
  return result;
}

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
