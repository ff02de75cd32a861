/* Table: mappings, shared memory, message queues and SysV semaphores. `object` is a number of bytes. */
#ifndef WARPLENS_PRELOAD_OSRT_MEMORY_H
#define WARPLENS_PRELOAD_OSRT_MEMORY_H

#include <mqueue.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/uio.h>

#define OSRT_MEMORY(X)                                                                                      \
  X(void *, mmap, (void *at, size_t size, int rights, int flags, int fd, off_t from),                       \
    (at, size, rights, flags, fd, from), CALL, MINUS, .fd = fd, .object = size)                             \
  X(void *, mmap64, (void *at, size_t size, int rights, int flags, int fd, off64_t from),                   \
    (at, size, rights, flags, fd, from), CALL, MINUS, .fd = fd, .object = size)                             \
  X(int, munmap, (void *at, size_t size), (at, size), CALL, MINUS, .object = size)                          \
  X(int, mprotect, (void *at, size_t size, int rights), (at, size, rights), CALL, MINUS, .object = size)    \
  X(int, madvise, (void *at, size_t size, int advice), (at, size, advice), CALL, MINUS, .object = size)     \
  X(int, msync, (void *at, size_t size, int flags), (at, size, flags), CALL, MINUS, .object = size)         \
  X(int, mlock, (const void *at, size_t size), (at, size), CALL, MINUS, .object = size)                     \
  X(int, mlock2, (const void *at, size_t size, unsigned flags), (at, size, flags), CALL, MINUS,             \
    .object = size)                                                                                         \
  X(int, mlockall, (int flags), (flags), CALL, MINUS)                                                       \
  X(int, brk, (void *to), (to), CALL, MINUS)                                                                \
  X(ssize_t, process_vm_readv,                                                                              \
    (pid_t which, const struct iovec *to, unsigned long count, const struct iovec *from, unsigned long its, \
     unsigned long flags),                                                                                  \
    (which, to, count, from, its, flags), CALL, MINUS)                                                      \
  X(ssize_t, process_vm_writev,                                                                             \
    (pid_t which, const struct iovec *from, unsigned long count, const struct iovec *to, unsigned long its, \
     unsigned long flags),                                                                                  \
    (which, from, count, to, its, flags), CALL, MINUS)                                                      \
  X(void *, shmat, (int which, const void *at, int flags), (which, at, flags), CALL, MINUS)                 \
  X(int, shmctl, (int which, int command, struct shmid_ds *to), (which, command, to), CALL, MINUS)          \
  X(int, shmdt, (const void *at), (at), CALL, MINUS)                                                        \
  X(int, shmget, (key_t key, size_t size, int flags), (key, size, flags), CALL, MINUS, .object = size)      \
  X(int, msgctl, (int which, int command, struct msqid_ds *to), (which, command, to), CALL, MINUS)          \
  X(int, msgget, (key_t key, int flags), (key, flags), CALL, MINUS)                                         \
  X(ssize_t, msgrcv, (int which, void *to, size_t size, long kind, int flags),                              \
    (which, to, size, kind, flags), CALL, MINUS, .object = size)                                            \
  X(int, msgsnd, (int which, const void *from, size_t size, int flags), (which, from, size, flags), CALL,   \
    MINUS, .object = size)                                                                                  \
  X(int, semget, (key_t key, int count, int flags), (key, count, flags), CALL, MINUS)                       \
  X(int, semop, (int which, struct sembuf *what, size_t count), (which, what, count), CALL, MINUS)          \
  X(int, semtimedop, (int which, struct sembuf *what, size_t count, const struct timespec *most),           \
    (which, what, count, most), CALL, MINUS)                                                                \
  X(int, mq_notify, (mqd_t which, const struct sigevent *how), (which, how), CALL, MINUS, .fd = which)      \
  X(ssize_t, mq_receive, (mqd_t which, char *to, size_t size, unsigned *priority),                          \
    (which, to, size, priority), CALL, MINUS, .fd = which, .object = size)                                  \
  X(ssize_t, mq_timedreceive,                                                                               \
    (mqd_t which, char *to, size_t size, unsigned *priority, const struct timespec *until),                 \
    (which, to, size, priority, until), CALL, MINUS, .fd = which, .object = size)                           \
  X(int, mq_send, (mqd_t which, const char *from, size_t size, unsigned priority),                          \
    (which, from, size, priority), CALL, MINUS, .fd = which, .object = size)                                \
  X(int, mq_timedsend,                                                                                      \
    (mqd_t which, const char *from, size_t size, unsigned priority, const struct timespec *until),          \
    (which, from, size, priority, until), CALL, MINUS, .fd = which, .object = size)

#define OSRT_MEMORY_BY_HAND(X)                                              \
  X(void *, mremap, (void *at, size_t size, size_t wanted, int flags, ...)) \
  X(int, semctl, (int which, int number, int command, ...))                 \
  X(mqd_t, mq_open, (const char *name, int flags, ...))

#endif
