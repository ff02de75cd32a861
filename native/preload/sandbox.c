/* Tells the agent before a program forbids itself system calls.
 * Afterwards a system call that the program does not expect may kill it, at its exit at the
 * latest, so the agent makes none. libseccomp hides that step from us, but first gives up new
 * rights. The programs that it starts are still followed: it must allow what their loading
 * needs. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <sys/prctl.h>

#include "preload/osrt/tap.h"
#include "stub.h"
#include "system.h"

WRAPPER int prctl(int option, ...) {
  unsigned long values[4];
  va_list list;
  va_start(list, option);
  for (int i = 0; i < 4; ++i) {
    values[i] = va_arg(list, unsigned long);
  }
  va_end(list);
  if (option == PR_SET_SECCOMP || option == PR_SET_NO_NEW_PRIVS) {
    tap_stop("it forbids itself system calls, so samples and all else of the CPU side end there too");
  }
  if (option == PR_SET_SECCOMP) {
    __atomic_store_n(&g_stub.sandbox, CLOSED, __ATOMIC_RELAXED);
  } else if (option == PR_SET_NO_NEW_PRIVS && g_stub.sandbox == NO_SANDBOX) {
    __atomic_store_n(&g_stub.sandbox, CLOSING, __ATOMIC_RELAXED);
  }
  return next()->prctl != NULL ? next()->prctl(option, values[0], values[1], values[2], values[3])
                               : (int)syscall(SYS_prctl, option, values[0], values[1], values[2], values[3]);
}
