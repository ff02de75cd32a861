/* Wrappers: sockets, sending and receiving. */
#define _GNU_SOURCE
#include <errno.h>

#include "osrt.h"

#define DECLARE(type, name, parameters, ...) type name parameters;
OSRT_SOCKETS(DECLARE)

OSRT_SOCKETS(OS_WRAPPER)

WRAPPER int socket(int family, int kind, int protocol) {
  OS_CALL(int, socket, (family, kind, protocol), MINUS)
  os_forget(result);
  OS_TELL(socket, CALL, MINUS, .fd = result)
  return result;
}

WRAPPER int socketpair(int family, int kind, int protocol, int ends[2]) {
  OS_CALL(int, socketpair, (family, kind, protocol, ends), MINUS)
  os_forget_pair(result, ends);
  OS_TELL(socketpair, CALL, MINUS)
  return result;
}

WRAPPER int bind(int fd, const struct sockaddr *own, socklen_t size) {
  OS_CALL(int, bind, (fd, own, size), MINUS)
  os_forget(fd);
  OS_TELL(bind, CALL, MINUS, .fd = fd)
  return result;
}

WRAPPER int connect(int fd, const struct sockaddr *peer, socklen_t size) {
  OS_CALL(int, connect, (fd, peer, size), MINUS)
  os_forget(fd);
  OS_TELL(connect, CALL, MINUS, .fd = fd, .peer = peer, .peer_size = size)
  return result;
}

WRAPPER int accept(int fd, struct sockaddr *peer, socklen_t *size) {
  OS_CALL(int, accept, (fd, peer, size), MINUS)
  os_forget(result);
  OS_TELL(accept, CALL, MINUS, .fd = fd)
  return result;
}

WRAPPER int accept4(int fd, struct sockaddr *peer, socklen_t *size, int flags) {
  OS_CALL(int, accept4, (fd, peer, size, flags), MINUS)
  os_forget(result);
  OS_TELL(accept4, CALL, MINUS, .fd = fd)
  return result;
}
