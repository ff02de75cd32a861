// Demangles C++ names.
#include "demangle.h"

#include <algorithm>
#include <csetjmp>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__GLIBCXX__)
// What abi::__cxa_demangle of libstdc++ is made of: it allocates nothing, and hands out piece by piece. Only the static library
// has it, which the reader is linked with.
extern "C" int __gcclibcxx_demangle_callback(const char *, void (*)(const char *, size_t, void *), void *);
#elif !defined(_MSC_VER)
#include <cxxabi.h>
#endif

namespace warplens::reader {
namespace {

bool looks_mangled(const char *name) {
  return name[0] == '_' && name[1] == 'Z' && std::strlen(name) <= kLongestName;
}

#if defined(__GLIBCXX__)
struct Output {
  char *out;
  size_t room;
  size_t used;
  std::jmp_buf full;
};

void append(const char *text, size_t size, void *opaque) {
  auto *output = static_cast<Output *>(opaque);
  const size_t fits = std::min(size, output->room - output->used);
  std::memcpy(output->out + output->used, text, fits);
  output->used += fits;
  if (output->used == output->room) {
    // Nobody between here and `demangle` has anything to clean up, and nothing else stops the demangler.
    std::longjmp(output->full, 1);
  }
}
#endif

}  // namespace

#if defined(__GLIBCXX__)
size_t demangle(const char *mangled, char *out, size_t room) {
  if (room == 0 || !looks_mangled(mangled)) {
    return 0;
  }
  static thread_local Output output;
  output.out = out;
  output.room = room;
  output.used = 0;
  if (setjmp(output.full) == 0) {
    const int status = __gcclibcxx_demangle_callback(mangled, append, &output);
    return status == 0 ? output.used : 0;
  }
  return output.used;
}
#elif !defined(_MSC_VER)
// Here the output cannot be bounded while it is made; recordings are finished on Linux, but for those that were moved.
size_t demangle(const char *mangled, char *out, size_t room) {
  if (!looks_mangled(mangled)) {
    return 0;
  }
  int status = 0;
  char *found = abi::__cxa_demangle(mangled, nullptr, nullptr, &status);
  if (found == nullptr) {
    return 0;
  }
  const size_t size = std::min(std::strlen(found), room);
  std::memcpy(out, found, size);
  std::free(found);
  return size;
}
#else
size_t demangle(const char *, char *, size_t) {
  return 0;
}
#endif

}  // namespace warplens::reader
