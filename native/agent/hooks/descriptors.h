// Finds the kind and name of a descriptor, and caches them.
// Files, sockets, pipes. It is read when a call is recorded, and cached until the descriptor
// changes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warplens::agent {

// A text of the process's names, 0 = not known; and whether it is the path of a file.
struct DescriptorText {
  uint32_t number = 0;
  bool is_path = false;
};

//! [MT] The path of a file, `socket 127.0.0.1:80 (TCP)`, `pipe` and the like. Keeps errno. In a signal handler that interrupted a slow
//! path of ours, and with `look` false: only what is remembered.
DescriptorText descriptor_text(int fd, bool look);

//! [MT] The descriptor is something else now.
void forget_descriptor(int fd);

//! [MT] The same for the address of a socket (struct sockaddr).
uint32_t address_text(const void *address, size_t size);

}  // namespace warplens::agent
