// Decides whether samples may contain kernel addresses.
// perf gives them even if kernel.kptr_restrict hides them, so the agent checks both settings.
#include "kernel.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <unistd.h>

#include <cstring>

namespace warplens::agent {

size_t kernel_frames(const char *chain, uint64_t length, uint64_t *frames, bool *cut) {
  size_t count = 0;
  bool kernel = false;
  *cut = false;
  for (uint64_t i = 0; i < length; ++i) {
    uint64_t address = 0;
    std::memcpy(&address, chain + i * sizeof(address), sizeof(address));
    if (address >= static_cast<uint64_t>(PERF_CONTEXT_MAX)) {
      kernel = address == static_cast<uint64_t>(PERF_CONTEXT_KERNEL);
    } else if (kernel && is_kernel_address(address)) {
      if (count == kMostKernelFrames) {
        *cut = true;
        break;
      }
      frames[count++] = address;
    }
  }
  return count;
}

bool has_addresses(std::string_view symbols) {
  // The first ones may be zero in truth: variables of each CPU.
  while (!symbols.empty()) {
    size_t digits = symbols.find_first_not_of("0123456789abcdef");
    if (symbols.substr(0, digits).find_first_not_of('0') != std::string_view::npos) {
      return true;
    }
    size_t end = symbols.find('\n');
    symbols.remove_prefix(end == std::string_view::npos ? symbols.size() : end + 1);
  }
  return false;
}

bool shows_kernel_addresses() {
  int fd = open("/proc/kallsyms", O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return false;
  }
  // The kernel formats as much of the text as the caller asks for, and the first line is mostly enough.
  bool shown = false;
  char text[4096];
  for (size_t want : {size_t{64}, sizeof(text)}) {
    ssize_t size =
        pread(fd, text, want, 0);  // from the beginning: half a line does not begin with its address
    shown = shown || (size > 0 && has_addresses({text, static_cast<size_t>(size)}));
    if (shown || size <= 0) {
      break;
    }
  }
  close(fd);
  return shown;
}

}  // namespace warplens::agent
