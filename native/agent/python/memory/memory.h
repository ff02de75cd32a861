// Reads memory of this process that may be gone at any moment: bad addresses are errors, never faults.
#pragma once

#include <cstddef>
#include <cstdint>

#include <sys/uio.h>

namespace warplens::agent {

// One piece of a batch.
struct Piece {
  void *to;
  uintptr_t from;
  size_t size;
};

//! [MT] Copies `size` bytes; false when any of them cannot be read.
bool copy_memory(void *to, uintptr_t from, size_t size);

//! [MT] Copies all pieces, in order, with as few system calls as there can be; how many of them are complete: what comes behind the
//! first bad one is not read.
size_t copy_pieces(const Piece *pieces, size_t count);

template <typename T>
bool copy_memory(T &to, uintptr_t from) {
  return copy_memory(&to, from, sizeof(T));
}

//! [MT] 0, or the errno for which no memory can be read in this process, by either way.
int memory_denied();

//! [FORK] In a child: the process is another.
void renew_memory();

}  // namespace warplens::agent
