// Reads memory that a program's structures point to, without trusting the pointer.
#pragma once

#include <cstddef>
#include <string>

namespace warplens::agent {

//! Appends up to `size` bytes; returns how many could be read.
size_t append_foreign(std::string &out, const void *from, size_t size);

//! Appends a text and its terminator, an element of `width` zero bytes. False when it could not be read to its end within
//! `longest` bytes; then what was read is there, with a terminator.
bool append_terminated(std::string &out, const void *from, size_t width, size_t longest);

}  // namespace warplens::agent
