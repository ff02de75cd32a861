// Reserves space on file systems, and checks whether a file may grow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace warplens {

//! Whether going on to `size` raises SIGXFSZ in the traced program: look before asking.
bool over_file_limit(uint64_t size);

//! Whether space that `reserve` got for this empty file is there when the mapped pages are written, and when they are written again.
//! WARPLENS_SPOOL_SPACE=reserved or =buffered decides otherwise, for tests and odd file systems.
bool can_reserve(int fd);

//! After this, writing to a mapping of these bytes cannot run out of space. 0 or an errno.
int reserve(int fd, uint64_t offset, size_t size);

//! The file gets longer, its space does not. 0 or an errno.
int extend(int fd, uint64_t size);

}  // namespace warplens
