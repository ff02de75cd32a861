// Demangles C++ names.
#pragma once

#include <cstddef>

namespace warplens::reader {

inline constexpr size_t kLongestName = 8192;  // of a mangled name, and of what it is turned into

// Writes the demangled form of `mangled` (NUL-terminated) to `out`, without a NUL, and returns its length: at most `room`, cut
// there. 0: it is no mangled name, or too long. Nothing about the name is trusted: a few hundred bytes may stand for gigabytes.
size_t demangle(const char *mangled, char *out, size_t room);

}  // namespace warplens::reader
