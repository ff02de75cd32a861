// Waits until the program has loaded PyTorch.
// A thread of the agent checks the loader's list, then subscribes to PyTorch's operators.
#include <link.h>
#include <unistd.h>

#include <climits>
#include <cstring>

#include "agent/hooks/cpu.h"
#include "agent/python/memory/memory.h"
#include "agent/python/sampling/pace.h"
#include "agent/session.h"
#include "agent/source.h"
#include "ops.h"
#include "spool/system/helpers.h"
#include "windows.h"

namespace warplens::agent {
namespace {

constexpr char kName[] = "/libtorch_cpu.so";
constexpr uint64_t kMillisecond = 1'000'000;
// Looks are 20 ms apart while libraries are loaded, and 100 ms apart once nothing came for a second.
constexpr uint64_t kOften = 20;
constexpr uint64_t kRarely = 100;
constexpr uint32_t kBusyLooks = 50;
constexpr uint32_t kMostLibraries = 1 << 14;

enum Phase : uint32_t { waiting, opening, failed, recording };
std::atomic<uint32_t> g_phase{waiting};
std::atomic<uint32_t> g_stop{0};
std::atomic<uint32_t> g_looked{0};   // the thread knows whether PyTorch is loaded, and listens if so
constexpr uint64_t kPatience = 500;  // ms that a program waits when it begins to record itself
bool g_inputs = false;

// The loader's list of libraries. It is read without the loader's locks, which a fork may leave locked in the child: each piece may be
// gone when it is read, and then the list is read from its beginning.
class Loaded {
 public:
  //! Whether a library whose path ends with kName was loaded since the last look; `path` gets it.
  bool look(char (&path)[PATH_MAX]) {
    uintptr_t next = reinterpret_cast<uintptr_t>(last_ == 0 ? _r_debug.r_map : nullptr);
    link_map map;
    const bool anew = last_ == 0;
    grew_ = false;
    if (!anew) {
      if (looks_++ % 64 == 63 || !copy_memory(map, last_) ||
          reinterpret_cast<uintptr_t>(map.l_ld) != last_dynamic_) {
        last_ = 0;  // another one may be there now
        return false;
      }
      next = reinterpret_cast<uintptr_t>(map.l_next);
    }
    for (uint32_t count = 0; next != 0 && count < kMostLibraries && copy_memory(map, next); ++count) {
      last_ = next;
      grew_ = !anew;
      last_dynamic_ = reinterpret_cast<uintptr_t>(map.l_ld);
      next = reinterpret_cast<uintptr_t>(map.l_next);
      if (ends_with_name(reinterpret_cast<uintptr_t>(map.l_name), path)) {
        return true;
      }
    }
    return false;
  }

  //! Whether the last look came upon a new library.
  bool grew() const { return grew_; }

 private:
  static bool ends_with_name(uintptr_t text, char (&path)[PATH_MAX]) {
    // A path may end just before a page that cannot be read.
    for (size_t size = 0; size < PATH_MAX;) {
      size_t piece = kPage - (text + size) % kPage;
      piece = piece < PATH_MAX - size ? piece : PATH_MAX - size;
      if (!copy_memory(path + size, text + size, piece)) {
        return false;
      }
      if (const void *end = std::memchr(path + size, 0, piece)) {
        const size_t length = static_cast<size_t>(static_cast<const char *>(end) - path);
        constexpr size_t kLength = sizeof(kName) - 1;
        return length >= kLength && std::memcmp(path + length - kLength, kName, kLength) == 0;
      }
      size += piece;
    }
    return false;
  }

  uintptr_t last_ = 0;
  uintptr_t last_dynamic_ = 0;
  uint32_t looks_ = 0;
  bool grew_ = false;
};

bool wait_for_torch(char (&path)[PATH_MAX]) {
  Loaded loaded;
  uint32_t quiet = 0;
  for (uint32_t looks = 0; !loaded.look(path); ++looks) {
    g_looked.store(1);
    wake_at(g_looked);
    if (looks % 16 == 15 && only_helpers_left()) {
      return false;
    }
    quiet = loaded.grew() ? 0 : quiet + 1;
    wait_at(g_stop, 0, clock_ns(CLOCK_MONOTONIC) + (quiet < kBusyLooks ? kOften : kRarely) * kMillisecond);
    if (g_stop.load(std::memory_order_acquire) != 0) {
      return false;
    }
  }
  return true;
}

void listen(void *) {
  char path[PATH_MAX];
  uint32_t before = waiting;
  if (!wait_for_torch(path) || !g_phase.compare_exchange_strong(before, opening)) {
    return;
  }
  torch::Library library{};
  std::string version;
  std::string problem = torch::open_library(path, library, version);
  Names *known = names();
  const uint16_t domain = known != nullptr ? known->domain("pytorch") : 0;
  if (problem.empty() && domain == 0) {
    problem = "the process has no number left for their domain";
  }
  if (!problem.empty()) {
    own_cpu_notice(CpuNotice::torch_unknown, 0, version.empty() ? problem : version + ": " + problem);
  } else {
    torch::begin_ops(library, domain, g_inputs);
    torch::follow_windows();
    own_cpu_notice(CpuNotice::torch, 0, version);
  }
  g_phase.store(problem.empty() ? recording : failed);
  g_looked.store(1);
  wake_at(g_looked);
}

void start() {
  uint32_t phase = opening;
  g_phase.compare_exchange_strong(phase, waiting);  // a fork came in between: the child opens it anew
  if (g_phase.load() == waiting) {
    g_stop.store(0);
    start_own_thread("warplens-torch", listen, nullptr);
  } else if (g_phase.load() == recording) {
    torch::follow_windows();
  }
}

void begin(const CpuSettings &settings, WarplensTap &) {
  g_inputs = (settings.flags & kCpuOpInputs) != 0;
  start();
}

// Returns when operators are recorded, if PyTorch is loaded.
void attach(const CpuSettings &settings) {
  g_inputs = (settings.flags & kCpuOpInputs) != 0;
  if (g_phase.load() == recording) {
    torch::resume_ops(g_inputs);
    torch::follow_windows();
  } else if (g_phase.load() == waiting) {
    g_looked.store(0);
    start();
    wait_at(g_looked, 0, clock_ns(CLOCK_MONOTONIC) + kPatience * kMillisecond);
  }
  torch::wait_for_callbacks();
}

void end() {
  g_stop.store(1, std::memory_order_release);
  wake_at(g_stop);
  torch::end_ops();
  torch::stop_following();
}

// The program goes on without our callbacks. It calls this from Python, so no lock of PyTorch is held.
void detach() {
  end();
  torch::remove_callbacks();
}

}  // namespace

extern const CpuSource kTorchSource{kCpuOps, begin, nullptr, start, end, torch::wait_for_callbacks,
                                    attach,  detach};

}  // namespace warplens::agent
