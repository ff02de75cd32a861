/* Records how processes end: for the process itself, and for the parent that collects it. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "preload/osrt/observe.h"
#include "stub.h"
#include "system.h"
#include "warplens/leave.h"

static void note_exit(int status) {
  if (is_open()) {
    if ((status & 0xff) != 0) {
      note_failed();
    }
    append_own(WARPLENS_PROCESS_EXIT, status & 0xff, NULL, NULL);
  }
}

WRAPPER WarplensLeave warplens_leave = {NULL, 0};

/* A child of vfork has its parent's memory, but its own number. */
static void leave(void) {
  int32_t pid = __atomic_load_n(&warplens_leave.pid, __ATOMIC_ACQUIRE);
  if (pid != 0 && pid == (int32_t)system_call(SYS_getpid, 0, 0, 0, 0)) {
    warplens_leave.call();
  }
}

/* Registered with on_exit: runs after the program's own handlers. */
void at_exit(int status, void *nothing) {
  (void)nothing;
  note_exit(status);
}

static _Noreturn void end(int status) {
  for (;;) {
    system_call(SYS_exit_group, status, 0, 0, 0);
  }
}

WRAPPER void _exit(int status) {
  leave();
  note_exit(status);
  if (next()->_exit != NULL) {
    next()->_exit(status);
  }
  end(status);
}

WRAPPER void _Exit(int status) {
  _exit(status);
}

WRAPPER void quick_exit(int status) {
  leave();
  note_exit(status);
  if (next()->quick_exit != NULL) {
    next()->quick_exit(status);
  }
  end(status);
}

/* Where the call failed, the program's pointer may be a wrong one. */
static void note_ended(pid_t pid, const int *from) {
  if (pid <= 0 || !is_open()) {
    return;
  }
  int status = *from;
  if (!WIFEXITED(status) && !WIFSIGNALED(status)) {
    return;
  }
  append(WARPLENS_PROCESS_WAITED, pid, (int32_t)system_call(SYS_getpid, 0, 0, 0, 0),
         WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), clock_now(), NULL, NULL);
}

/* Before our constructor, and where nobody has the function. */
static pid_t plain_wait4(pid_t pid, int *status, int options, struct rusage *usage) {
  return (pid_t)syscall(SYS_wait4, pid, status, options, usage);
}

WRAPPER pid_t wait(int *status) {
  int own = 0;
  status = status != NULL ? status : &own;
  OBSERVE
  pid_t pid = next()->wait != NULL ? next()->wait(status) : plain_wait4(-1, status, 0, NULL);
  OBSERVED(wait, MINUS, pid)
  note_ended(pid, status);
  return pid;
}

WRAPPER pid_t waitpid(pid_t which, int *status, int options) {
  int own = 0;
  status = status != NULL ? status : &own;
  OBSERVE
  pid_t pid = next()->waitpid != NULL ? next()->waitpid(which, status, options)
                                      : plain_wait4(which, status, options, NULL);
  OBSERVED(waitpid, MINUS, pid, .object = (uint64_t)which)
  note_ended(pid, status);
  return pid;
}

WRAPPER pid_t wait3(int *status, int options, struct rusage *usage) {
  int own = 0;
  status = status != NULL ? status : &own;
  OBSERVE
  pid_t pid =
      next()->wait3 != NULL ? next()->wait3(status, options, usage) : plain_wait4(-1, status, options, usage);
  OBSERVED(wait3, MINUS, pid)
  note_ended(pid, status);
  return pid;
}

WRAPPER pid_t wait4(pid_t which, int *status, int options, struct rusage *usage) {
  int own = 0;
  status = status != NULL ? status : &own;
  OBSERVE
  pid_t pid = next()->wait4 != NULL ? next()->wait4(which, status, options, usage)
                                    : plain_wait4(which, status, options, usage);
  OBSERVED(wait4, MINUS, pid, .object = (uint64_t)which)
  note_ended(pid, status);
  return pid;
}

WRAPPER int waitid(idtype_t type, id_t which, siginfo_t *facts, int options) {
  siginfo_t own = {0};
  facts = facts != NULL ? facts : &own;
  OBSERVE
  int result = next()->waitid != NULL ? next()->waitid(type, which, facts, options)
                                      : (int)syscall(SYS_waitid, type, which, facts, options, NULL);
  OBSERVED(waitid, MINUS, result, .object = which)
  if (result != 0 || (options & WNOWAIT) != 0 || !is_open()) {
    return result;
  }
  int ended = facts->si_code == CLD_EXITED || facts->si_code == CLD_KILLED || facts->si_code == CLD_DUMPED;
  if (ended && facts->si_pid > 0) {
    append(WARPLENS_PROCESS_WAITED, facts->si_pid, (int32_t)system_call(SYS_getpid, 0, 0, 0, 0),
           facts->si_code == CLD_EXITED ? facts->si_status & 0xff : 128 + facts->si_status, clock_now(), NULL,
           NULL);
  }
  return result;
}
