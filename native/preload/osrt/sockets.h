/* Table: sockets, sending and receiving. `object` is the number of requested bytes or messages. */
#ifndef WARPLENS_PRELOAD_OSRT_SOCKETS_H
#define WARPLENS_PRELOAD_OSRT_SOCKETS_H

#include <netdb.h>
#include <sys/socket.h>
#include <sys/types.h>

#define OSRT_SOCKETS(X)                                                                                      \
  X(int, listen, (int fd, int backlog), (fd, backlog), CALL, MINUS, .fd = fd)                                \
  X(int, shutdown, (int fd, int how), (fd, how), CALL, MINUS, .fd = fd)                                      \
  X(ssize_t, recv, (int fd, void *to, size_t size, int flags), (fd, to, size, flags), CALL, MINUS, .fd = fd, \
    .object = size)                                                                                          \
  X(ssize_t, recvfrom, (int fd, void *to, size_t size, int flags, struct sockaddr *peer, socklen_t *room),   \
    (fd, to, size, flags, peer, room), CALL, MINUS, .fd = fd, .object = size)                                \
  X(ssize_t, recvmsg, (int fd, struct msghdr *to, int flags), (fd, to, flags), CALL, MINUS, .fd = fd)        \
  X(int, recvmmsg, (int fd, struct mmsghdr *to, unsigned count, int flags, struct timespec *most),           \
    (fd, to, count, flags, most), CALL, MINUS, .fd = fd)                                                     \
  X(ssize_t, send, (int fd, const void *from, size_t size, int flags), (fd, from, size, flags), CALL, MINUS, \
    .fd = fd, .object = size)                                                                                \
  X(ssize_t, sendto,                                                                                         \
    (int fd, const void *from, size_t size, int flags, const struct sockaddr *peer, socklen_t room),         \
    (fd, from, size, flags, peer, room), CALL, MINUS, .fd = fd, .object = size)                              \
  X(ssize_t, sendmsg, (int fd, const struct msghdr *from, int flags), (fd, from, flags), CALL, MINUS,        \
    .fd = fd)                                                                                                \
  X(int, sendmmsg, (int fd, struct mmsghdr *from, unsigned count, int flags), (fd, from, count, flags),      \
    CALL, MINUS, .fd = fd)                                                                                   \
  X(ssize_t, __recv_chk, (int fd, void *to, size_t size, size_t room, int flags),                            \
    (fd, to, size, room, flags), CALL, MINUS, .name = "recv", .fd = fd, .object = size)                      \
  X(ssize_t, __recvfrom_chk,                                                                                 \
    (int fd, void *to, size_t size, size_t room, int flags, struct sockaddr *peer, socklen_t *its),          \
    (fd, to, size, room, flags, peer, its), CALL, MINUS, .name = "recvfrom", .fd = fd, .object = size)       \
  X(int, getaddrinfo,                                                                                        \
    (const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **to),             \
    (node, service, hints, to), CALL, NEVER, .text = node)

#define OSRT_SOCKETS_BY_HAND(X)                                          \
  X(int, socket, (int family, int kind, int protocol))                   \
  X(int, socketpair, (int family, int kind, int protocol, int ends[2]))  \
  X(int, bind, (int fd, const struct sockaddr *own, socklen_t size))     \
  X(int, connect, (int fd, const struct sockaddr *peer, socklen_t size)) \
  X(int, accept, (int fd, struct sockaddr *peer, socklen_t *size))       \
  X(int, accept4, (int fd, struct sockaddr *peer, socklen_t *size, int flags))

#endif
