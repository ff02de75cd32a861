// Reads memory of this process that may be unmapped.
// It reads page by page if one read of all fails.
#include "own_memory.h"

#include <algorithm>
#include <cerrno>

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/python/memory/memory.h"
#include "spool/system/subject.h"

namespace warplens::agent {

size_t read_own(uint64_t address, void *to, size_t size) {
  constexpr size_t kPageBytes = 4096;
  if (size > ~address) {
    return 0;
  }
  int saved = errno;
  size_t done = copy_memory(to, address, size) ? size : 0;
  for (size_t piece = 0; done < size; done += piece) {
    piece = std::min(size - done, kPageBytes - (address + done) % kPageBytes);
    if (!copy_memory(static_cast<char *>(to) + done, address + done, piece)) {
      break;
    }
  }
  errno = saved;
  return done;
}

size_t read_subject(uint64_t address, void *to, size_t size) {
  if (!is_outside()) {
    return read_own(address, to, size);
  }
  iovec local{to, size}, remote{reinterpret_cast<void *>(address), size};
  long done = syscall(SYS_process_vm_readv, subject(), &local, 1, &remote, 1, 0);
  return done > 0 ? static_cast<size_t>(done) : 0;
}

}  // namespace warplens::agent
