/* Table: functions on files by their names. */
#ifndef WARPLENS_PRELOAD_OSRT_PATHS_H
#define WARPLENS_PRELOAD_OSRT_PATHS_H

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* glibc before 2.33 has stat and the like under these names only. */
#define OSRT_OLD_STAT(X, name, kind)                                                               \
  X(int, name, (int version, const char *path, struct kind *to), (version, path, to), FILE, MINUS, \
    .text = path)

#define OSRT_PATHS(X)                                                                                        \
  X(int, stat, (const char *path, struct stat *to), (path, to), FILE, MINUS, .text = path)                   \
  X(int, stat64, (const char *path, struct stat64 *to), (path, to), FILE, MINUS, .text = path)               \
  X(int, lstat, (const char *path, struct stat *to), (path, to), FILE, MINUS, .text = path)                  \
  X(int, lstat64, (const char *path, struct stat64 *to), (path, to), FILE, MINUS, .text = path)              \
  X(int, fstat, (int fd, struct stat *to), (fd, to), FILE, MINUS, .fd = fd)                                  \
  X(int, fstat64, (int fd, struct stat64 *to), (fd, to), FILE, MINUS, .fd = fd)                              \
  X(int, fstatat, (int at, const char *path, struct stat *to, int flags), (at, path, to, flags), FILE,       \
    MINUS, .text = path)                                                                                     \
  X(int, fstatat64, (int at, const char *path, struct stat64 *to, int flags), (at, path, to, flags), FILE,   \
    MINUS, .text = path)                                                                                     \
  OSRT_OLD_STAT(X, __xstat, stat)                                                                            \
  OSRT_OLD_STAT(X, __xstat64, stat64)                                                                        \
  OSRT_OLD_STAT(X, __lxstat, stat)                                                                           \
  OSRT_OLD_STAT(X, __lxstat64, stat64)                                                                       \
  X(int, __fxstat, (int version, int fd, struct stat *to), (version, fd, to), FILE, MINUS, .fd = fd)         \
  X(int, __fxstat64, (int version, int fd, struct stat64 *to), (version, fd, to), FILE, MINUS, .fd = fd)     \
  X(int, __fxstatat, (int version, int at, const char *path, struct stat *to, int flags),                    \
    (version, at, path, to, flags), FILE, MINUS, .text = path)                                               \
  X(int, __fxstatat64, (int version, int at, const char *path, struct stat64 *to, int flags),                \
    (version, at, path, to, flags), FILE, MINUS, .text = path)                                               \
  X(int, statx, (int at, const char *path, int flags, unsigned mask, struct statx *to),                      \
    (at, path, flags, mask, to), FILE, MINUS, .text = path)                                                  \
  X(int, access, (const char *path, int mode), (path, mode), FILE, MINUS, .text = path)                      \
  X(int, faccessat, (int at, const char *path, int mode, int flags), (at, path, mode, flags), FILE, MINUS,   \
    .text = path)                                                                                            \
  X(int, unlink, (const char *path), (path), FILE, MINUS, .text = path)                                      \
  X(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), FILE, MINUS, .text = path)      \
  X(int, rename, (const char *path, const char *to), (path, to), FILE, MINUS, .text = path)                  \
  X(int, renameat, (int at, const char *path, int its, const char *to), (at, path, its, to), FILE, MINUS,    \
    .text = path)                                                                                            \
  X(int, renameat2, (int at, const char *path, int its, const char *to, unsigned flags),                     \
    (at, path, its, to, flags), FILE, MINUS, .text = path)                                                   \
  X(int, link, (const char *path, const char *to), (path, to), FILE, MINUS, .text = path)                    \
  X(int, symlink, (const char *path, const char *to), (path, to), FILE, MINUS, .text = to)                   \
  X(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size), FILE, MINUS,             \
    .text = path)                                                                                            \
  X(ssize_t, readlinkat, (int at, const char *path, char *to, size_t size), (at, path, to, size), FILE,      \
    MINUS, .text = path)                                                                                     \
  X(ssize_t, __readlink_chk, (const char *path, char *to, size_t size, size_t room), (path, to, size, room), \
    FILE, MINUS, .name = "readlink", .text = path)                                                           \
  X(int, mkdir, (const char *path, mode_t mode), (path, mode), FILE, MINUS, .text = path)                    \
  X(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), FILE, MINUS, .text = path)      \
  X(int, rmdir, (const char *path), (path), FILE, MINUS, .text = path)                                       \
  X(int, mkfifo, (const char *path, mode_t mode), (path, mode), FILE, MINUS, .text = path)                   \
  X(int, mkfifoat, (int at, const char *path, mode_t mode), (at, path, mode), FILE, MINUS, .text = path)     \
  X(int, chmod, (const char *path, mode_t mode), (path, mode), FILE, MINUS, .text = path)                    \
  X(int, truncate, (const char *path, off_t size), (path, size), FILE, MINUS, .text = path,                  \
    .object = (uint64_t)size)                                                                                \
  X(int, truncate64, (const char *path, off64_t size), (path, size), FILE, MINUS, .text = path,              \
    .object = (uint64_t)size)                                                                                \
  X(DIR *, opendir, (const char *path), (path), FILE, POINTER, .text = path)                                 \
  X(int, chdir, (const char *path), (path), FILE, MINUS, .text = path)                                       \
  X(int, chroot, (const char *path), (path), CALL, MINUS, .text = path)

#define OSRT_PATHS_BY_HAND(X)                                  \
  X(int, open, (const char *path, int flags, ...))             \
  X(int, open64, (const char *path, int flags, ...))           \
  X(int, openat, (int at, const char *path, int flags, ...))   \
  X(int, openat64, (int at, const char *path, int flags, ...)) \
  X(int, __open_2, (const char *path, int flags))              \
  X(int, __open64_2, (const char *path, int flags))            \
  X(int, __openat_2, (int at, const char *path, int flags))    \
  X(int, __openat64_2, (int at, const char *path, int flags))  \
  X(int, creat, (const char *path, mode_t mode))               \
  X(int, creat64, (const char *path, mode_t mode))

#endif
