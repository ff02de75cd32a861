/* Table: waiting for events and signals, and sleeping. `object` is the number of descriptors, or the set of them. */
#ifndef WARPLENS_PRELOAD_OSRT_WAITS_H
#define WARPLENS_PRELOAD_OSRT_WAITS_H

#include <aio.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

#define OSRT_WAITS(X)                                                                                        \
  X(int, poll, (struct pollfd * these, nfds_t count, int most), (these, count, most), CALL, MINUS,           \
    .fd = os_only(these, count, result), .object = count)                                                    \
  X(int, ppoll, (struct pollfd * these, nfds_t count, const struct timespec *most, const sigset_t *mask),    \
    (these, count, most, mask), CALL, MINUS, .fd = os_only(these, count, result), .object = count)           \
  X(int, __poll_chk, (struct pollfd * these, nfds_t count, int most, size_t room),                           \
    (these, count, most, room), CALL, MINUS, .name = "poll", .fd = os_only(these, count, result),            \
    .object = count)                                                                                         \
  X(int, __ppoll_chk,                                                                                        \
    (struct pollfd * these, nfds_t count, const struct timespec *most, const sigset_t *mask, size_t room),   \
    (these, count, most, mask, room), CALL, MINUS, .name = "ppoll", .fd = os_only(these, count, result),     \
    .object = count)                                                                                         \
  X(int, select, (int most, fd_set *in, fd_set *out, fd_set *odd, struct timeval *until),                    \
    (most, in, out, odd, until), CALL, MINUS, .object = (uint64_t)most)                                      \
  X(int, pselect,                                                                                            \
    (int most, fd_set *in, fd_set *out, fd_set *odd, const struct timespec *until, const sigset_t *mask),    \
    (most, in, out, odd, until, mask), CALL, MINUS, .object = (uint64_t)most)                                \
  X(int, epoll_wait, (int fd, struct epoll_event *to, int room, int most), (fd, to, room, most), CALL,       \
    MINUS, .fd = fd, .object = (uint64_t)room)                                                               \
  X(int, epoll_pwait, (int fd, struct epoll_event *to, int room, int most, const sigset_t *mask),            \
    (fd, to, room, most, mask), CALL, MINUS, .fd = fd, .object = (uint64_t)room)                             \
  X(int, epoll_pwait2,                                                                                       \
    (int fd, struct epoll_event *to, int room, const struct timespec *most, const sigset_t *mask),           \
    (fd, to, room, most, mask), CALL, MINUS, .fd = fd, .object = (uint64_t)room)                             \
  X(int, epoll_ctl, (int fd, int operation, int of, struct epoll_event *what), (fd, operation, of, what),    \
    CALL, MINUS, .fd = fd)                                                                                   \
  X(int, nanosleep, (const struct timespec *time, struct timespec *rest), (time, rest), CALL, MINUS)         \
  X(int, clock_nanosleep, (clockid_t clock, int flags, const struct timespec *time, struct timespec *rest),  \
    (clock, flags, time, rest), CALL, NUMBER)                                                                \
  X(unsigned, sleep, (unsigned seconds), (seconds), CALL, NEVER)                                             \
  X(int, usleep, (useconds_t time), (time), CALL, MINUS)                                                     \
  X(int, sched_yield, (void), (), CALL, MINUS)                                                               \
  X(int, pause, (void), (), CALL, MINUS)                                                                     \
  X(int, sigsuspend, (const sigset_t *mask), (mask), CALL, MINUS)                                            \
  X(int, sigwait, (const sigset_t *mask, int *to), (mask, to), CALL, NUMBER)                                 \
  X(int, sigwaitinfo, (const sigset_t *mask, siginfo_t *to), (mask, to), CALL, MINUS)                        \
  X(int, sigtimedwait, (const sigset_t *mask, siginfo_t *to, const struct timespec *most), (mask, to, most), \
    CALL, MINUS)                                                                                             \
  X(int, sigaction, (int number, const struct sigaction *how, struct sigaction *before),                     \
    (number, how, before), CALL, MINUS, .object = (uint64_t)number)                                          \
  X(unsigned, alarm, (unsigned seconds), (seconds), CALL, NEVER)                                             \
  X(int, aio_suspend, (const struct aiocb *const these[], int count, const struct timespec *most),           \
    (these, count, most), CALL, MINUS)                                                                       \
  X(int, aio_suspend64, (const struct aiocb64 *const these[], int count, const struct timespec *most),       \
    (these, count, most), CALL, MINUS)                                                                       \
  X(int, aio_fsync, (int operation, struct aiocb *what), (operation, what), CALL, MINUS)                     \
  X(int, aio_fsync64, (int operation, struct aiocb64 *what), (operation, what), CALL, MINUS)

/* Of poll: the descriptor, where there is only one. */
static inline int os_only(const struct pollfd *these, nfds_t count, int result) {
  return count == 1 && result >= 0 ? these[0].fd : -1;
}

#endif
