// Reads memory of the program through the kernel.
// A bad pointer is then an error, where a direct read would end the program.
#include "foreign.h"

#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace warplens::agent {
namespace {

constexpr size_t kPiece = 4096;

ssize_t read_self(char *to, const void *from, size_t size) {
  iovec local{to, size};
  iovec remote{const_cast<void *>(from), size};
  int saved = errno;
  ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  int error = errno;
  errno = saved;
  if (got < 0 &&
      (error == ENOSYS || error == EPERM)) {  // a container that forbids the call: trust the pointer
    std::memcpy(to, from, size);
    return static_cast<ssize_t>(size);
  }
  return got;
}

}  // namespace

size_t append_foreign(std::string &out, const void *from, size_t size) {
  size_t before = out.size();
  out.resize(before + size);
  ssize_t got = size == 0 ? 0 : read_self(out.data() + before, from, size);
  size_t kept = got < 0 ? 0 : static_cast<size_t>(got);
  out.resize(before + kept);
  return kept;
}

bool append_terminated(std::string &out, const void *from, size_t width, size_t longest) {
  const char *at = static_cast<const char *>(from);
  size_t begin = out.size();
  size_t searched = 0;
  for (;;) {
    // Up to the end of a page: the next one may not be there, and need not.
    size_t want = kPiece - reinterpret_cast<uintptr_t>(at) % kPiece;
    want = std::min(want, longest - (out.size() - begin));
    size_t got = append_foreign(out, at, want);
    at += got;
    for (; searched + width <= out.size() - begin; searched += width) {
      if (std::all_of(&out[begin + searched], &out[begin + searched] + width,
                      [](char c) { return c == 0; })) {
        out.resize(begin + searched + width);
        return true;
      }
    }
    if (got < want || out.size() - begin >= longest || got == 0) {
      out.resize(begin + searched);
      out.append(width, '\0');
      return false;
    }
  }
}

}  // namespace warplens::agent
