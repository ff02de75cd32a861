// What the descriptors of the process are: files, sockets, pipes. Looked at when a call is recorded, and remembered until the
// descriptor becomes something else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpline::agent {

//! [MT] The number of a text: the path of a file, `socket 127.0.0.1:80 (TCP)`, `pipe` and the like; 0 = not known. Keeps errno. In a
//! signal handler that interrupted a slow path of ours: only what is remembered.
uint32_t descriptor_text(int fd);

//! [MT] The descriptor is something else now.
void forget_descriptor(int fd);

//! [MT] The same for the address of a socket (struct sockaddr).
uint32_t address_text(const void *address, size_t size);

}  // namespace warpline::agent
