/* Table: functions on descriptors. `object` is the number of requested bytes. */
#ifndef WARPLENS_PRELOAD_OSRT_FILES_H
#define WARPLENS_PRELOAD_OSRT_FILES_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

uint64_t os_sum(const struct iovec *parts, int count, ssize_t result);

#define OSRT_FILES(X)                                                                                       \
  X(ssize_t, read, (int fd, void *to, size_t size), (fd, to, size), FILE, MINUS, .fd = fd, .object = size)  \
  X(ssize_t, pread, (int fd, void *to, size_t size, off_t at), (fd, to, size, at), FILE, MINUS, .fd = fd,   \
    .object = size)                                                                                         \
  X(ssize_t, pread64, (int fd, void *to, size_t size, off64_t at), (fd, to, size, at), FILE, MINUS,         \
    .fd = fd, .object = size)                                                                               \
  X(ssize_t, readv, (int fd, const struct iovec *to, int count), (fd, to, count), FILE, MINUS, .fd = fd,    \
    .object = os_sum(to, count, result))                                                                    \
  X(ssize_t, preadv, (int fd, const struct iovec *to, int count, off_t at), (fd, to, count, at), FILE,      \
    MINUS, .fd = fd, .object = os_sum(to, count, result))                                                   \
  X(ssize_t, preadv64, (int fd, const struct iovec *to, int count, off64_t at), (fd, to, count, at), FILE,  \
    MINUS, .fd = fd, .object = os_sum(to, count, result))                                                   \
  X(ssize_t, preadv2, (int fd, const struct iovec *to, int count, off_t at, int flags),                     \
    (fd, to, count, at, flags), FILE, MINUS, .fd = fd, .object = os_sum(to, count, result))                 \
  X(ssize_t, preadv64v2, (int fd, const struct iovec *to, int count, off64_t at, int flags),                \
    (fd, to, count, at, flags), FILE, MINUS, .fd = fd, .object = os_sum(to, count, result))                 \
  X(ssize_t, write, (int fd, const void *from, size_t size), (fd, from, size), FILE, MINUS, .fd = fd,       \
    .object = size)                                                                                         \
  X(ssize_t, pwrite, (int fd, const void *from, size_t size, off_t at), (fd, from, size, at), FILE, MINUS,  \
    .fd = fd, .object = size)                                                                               \
  X(ssize_t, pwrite64, (int fd, const void *from, size_t size, off64_t at), (fd, from, size, at), FILE,     \
    MINUS, .fd = fd, .object = size)                                                                        \
  X(ssize_t, writev, (int fd, const struct iovec *from, int count), (fd, from, count), FILE, MINUS,         \
    .fd = fd, .object = os_sum(from, count, result))                                                        \
  X(ssize_t, pwritev, (int fd, const struct iovec *from, int count, off_t at), (fd, from, count, at), FILE, \
    MINUS, .fd = fd, .object = os_sum(from, count, result))                                                 \
  X(ssize_t, pwritev64, (int fd, const struct iovec *from, int count, off64_t at), (fd, from, count, at),   \
    FILE, MINUS, .fd = fd, .object = os_sum(from, count, result))                                           \
  X(ssize_t, pwritev2, (int fd, const struct iovec *from, int count, off_t at, int flags),                  \
    (fd, from, count, at, flags), FILE, MINUS, .fd = fd, .object = os_sum(from, count, result))             \
  X(ssize_t, pwritev64v2, (int fd, const struct iovec *from, int count, off64_t at, int flags),             \
    (fd, from, count, at, flags), FILE, MINUS, .fd = fd, .object = os_sum(from, count, result))             \
  X(off_t, lseek, (int fd, off_t at, int whence), (fd, at, whence), FILE, MINUS, .fd = fd)                  \
  X(off64_t, lseek64, (int fd, off64_t at, int whence), (fd, at, whence), FILE, MINUS, .fd = fd)            \
  X(int, fsync, (int fd), (fd), FILE, MINUS, .fd = fd)                                                      \
  X(int, fdatasync, (int fd), (fd), FILE, MINUS, .fd = fd)                                                  \
  X(int, syncfs, (int fd), (fd), FILE, MINUS, .fd = fd)                                                     \
  X(int, sync_file_range, (int fd, off64_t at, off64_t size, unsigned flags), (fd, at, size, flags), FILE,  \
    MINUS, .fd = fd, .object = (uint64_t)size)                                                              \
  X(int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size), FILE, MINUS, .fd = fd,  \
    .object = (uint64_t)size)                                                                               \
  X(int, fallocate64, (int fd, int mode, off64_t at, off64_t size), (fd, mode, at, size), FILE, MINUS,      \
    .fd = fd, .object = (uint64_t)size)                                                                     \
  X(int, posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size), FILE, NUMBER, .fd = fd,           \
    .object = (uint64_t)size)                                                                               \
  X(int, posix_fallocate64, (int fd, off64_t at, off64_t size), (fd, at, size), FILE, NUMBER, .fd = fd,     \
    .object = (uint64_t)size)                                                                               \
  X(int, ftruncate, (int fd, off_t size), (fd, size), FILE, MINUS, .fd = fd, .object = (uint64_t)size)      \
  X(int, ftruncate64, (int fd, off64_t size), (fd, size), FILE, MINUS, .fd = fd, .object = (uint64_t)size)  \
  X(int, flock, (int fd, int operation), (fd, operation), FILE, MINUS, .fd = fd)                            \
  X(int, lockf, (int fd, int command, off_t size), (fd, command, size), FILE, MINUS, .fd = fd)              \
  X(int, lockf64, (int fd, int command, off64_t size), (fd, command, size), FILE, MINUS, .fd = fd)          \
  X(ssize_t, copy_file_range, (int from, off64_t *at, int to, off64_t *its, size_t size, unsigned flags),   \
    (from, at, to, its, size, flags), FILE, MINUS, .fd = to, .object = size)                                \
  X(ssize_t, sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size), FILE, MINUS,       \
    .fd = to, .object = size)                                                                               \
  X(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size), FILE, MINUS,   \
    .fd = to, .object = size)                                                                               \
  X(ssize_t, splice, (int from, off64_t *at, int to, off64_t *its, size_t size, unsigned flags),            \
    (from, at, to, its, size, flags), FILE, MINUS, .fd = to, .object = size)                                \
  X(ssize_t, tee, (int from, int to, size_t size, unsigned flags), (from, to, size, flags), FILE, MINUS,    \
    .fd = to, .object = size)                                                                               \
  X(ssize_t, vmsplice, (int fd, const struct iovec *from, size_t count, unsigned flags),                    \
    (fd, from, count, flags), FILE, MINUS, .fd = fd, .object = os_sum(from, (int)count, result))            \
  X(ssize_t, getdents64, (int fd, void *to, size_t size), (fd, to, size), FILE, MINUS, .fd = fd,            \
    .object = size)                                                                                         \
  X(ssize_t, __read_chk, (int fd, void *to, size_t size, size_t room), (fd, to, size, room), FILE, MINUS,   \
    .name = "read", .fd = fd, .object = size)                                                               \
  X(ssize_t, __pread_chk, (int fd, void *to, size_t size, off_t at, size_t room), (fd, to, size, at, room), \
    FILE, MINUS, .name = "pread", .fd = fd, .object = size)                                                 \
  X(ssize_t, __pread64_chk, (int fd, void *to, size_t size, off64_t at, size_t room),                       \
    (fd, to, size, at, room), FILE, MINUS, .name = "pread64", .fd = fd, .object = size)

#define OSRT_FILES_BY_HAND(X)                         \
  X(int, close, (int fd))                             \
  X(int, close_range, (unsigned, unsigned, int))      \
  X(void, closefrom, (int))                           \
  X(int, dup, (int fd))                               \
  X(int, dup2, (int fd, int to))                      \
  X(int, dup3, (int fd, int to, int flags))           \
  X(int, fcntl, (int fd, int command, ...))           \
  X(int, fcntl64, (int fd, int command, ...))         \
  X(int, ioctl, (int fd, unsigned long request, ...)) \
  X(int, pipe, (int ends[2]))                         \
  X(int, pipe2, (int ends[2], int flags))

#endif
