/* Table: processes and threads, their signals, and the machine. `object` is whom it is about: a process, or a thread's address. */
#ifndef WARPLENS_PRELOAD_OSRT_PROCESS_H
#define WARPLENS_PRELOAD_OSRT_PROCESS_H

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/swap.h>
#include <termios.h>
#include <unistd.h>

#define OSRT_PROCESS(X)                                                                                \
  X(int, kill, (pid_t which, int number), (which, number), CALL, MINUS, .object = (uint64_t)which)     \
  X(int, killpg, (pid_t which, int number), (which, number), CALL, MINUS, .object = (uint64_t)which)   \
  X(int, tgkill, (pid_t which, pid_t thread, int number), (which, thread, number), CALL, MINUS,        \
    .object = (uint64_t)thread)                                                                        \
  X(int, sigqueue, (pid_t which, int number, union sigval value), (which, number, value), CALL, MINUS, \
    .object = (uint64_t)which)                                                                         \
  X(int, pthread_kill, (pthread_t thread, int number), (thread, number), CALL, NUMBER,                 \
    .object = (uint64_t)thread)                                                                        \
  X(int, pthread_cancel, (pthread_t thread), (thread), CALL, NUMBER, .object = (uint64_t)thread)       \
  X(int, pclose, (FILE * file), (file), CALL, MINUS)                                                   \
  X(int, unshare, (int flags), (flags), CALL, MINUS)                                                   \
  X(int, setns, (int fd, int kind), (fd, kind), CALL, MINUS, .fd = fd)                                 \
  X(int, acct, (const char *path), (path), CALL, MINUS, .text = path)                                  \
  X(int, mount,                                                                                        \
    (const char *what, const char *path, const char *kind, unsigned long flags, const void *more),     \
    (what, path, kind, flags, more), CALL, MINUS, .text = path)                                        \
  X(int, umount, (const char *path), (path), CALL, MINUS, .text = path)                                \
  X(int, umount2, (const char *path, int flags), (path, flags), CALL, MINUS, .text = path)             \
  X(int, swapon, (const char *path, int flags), (path, flags), CALL, MINUS, .text = path)              \
  X(int, swapoff, (const char *path), (path), CALL, MINUS, .text = path)                               \
  X(int, reboot, (int how), (how), CALL, MINUS)                                                        \
  X(int, vhangup, (void), (), CALL, MINUS)

#define OSRT_PROCESS_BY_HAND(X)                                                                       \
  X(int, pthread_create,                                                                              \
    (pthread_t * thread, const pthread_attr_t *how, void *(*body)(void *), void *argument))           \
  X(pid_t, fork, (void))                                                                              \
  X(int, forkpty, (int *terminal, char *name, const struct termios *how, const struct winsize *size)) \
  X(void, sync, (void))

#endif
