// Finds PyTorch's functions by their mangled names. No header of it is needed, and nothing is imported.
#include "library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "changing.h"
#include "drivers/torch_abi.h"

namespace warplens::agent::torch {
namespace {

constexpr size_t kMostRecord = 4096;          // bytes of a record; 344 in 2.13
constexpr int64_t kProbe = 0x57a9'1e45'0b5e;  // no sequence number, and no address
constexpr char kProbeName[] = "warplens::probe";

// What only the probe calls: a record is made, begun and ended as an operator of the program would.
struct Probe {
  void (*construct)(void *record, TorchScope scope);
  // One of them: since 2.9, and before.
  void (*begin)(void *record, TorchName name, int64_t sequence);
  void (*begin_text)(void *record, const char *name, int64_t sequence);
  void (*destroy)(void *record);
  uint64_t (*add_thread_callback)(TorchCallback callback);
};

template <typename Function>
bool find(void *handle, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

bool find_all(void *handle, Library &library, Probe &probe) {
  find(handle, "_ZN5torch8profiler4impl10inputSizesERKN2at14RecordFunctionEb", library.input_sizes);
  find(handle, "_ZN5torch8profiler4impl10inputTypesB5cxx11ERKN2at14RecordFunctionE", library.input_types);
  // The one that PyTorch calls: the program may have replaced it.
  if (!find(RTLD_DEFAULT, "_ZdlPv", library.give_back) && !find(handle, "_ZdlPv", library.give_back)) {
    return false;
  }
  return find(handle, "_ZNK2at14RecordFunction4nameEv", library.name) &&
         find(handle, "_ZNK2at14RecordFunction7isAsyncEv", library.is_async) &&
         find(handle, "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", library.add_callback) &&
         find(handle, "_ZN2at14removeCallbackEm", library.remove_callback) &&
         find(handle, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE",
              probe.add_thread_callback) &&
         find(handle, "_ZN2at14RecordFunctionC1ENS_11RecordScopeE", probe.construct) &&
         find(handle, "_ZN2at14RecordFunctionD1Ev", probe.destroy) &&
         (find(handle,
               "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_traitsIcEESt17"
               "reference_wrapperIKN3c1014FunctionSchemaEEEEl",
               probe.begin) ||
          find(handle, "_ZN2at14RecordFunction6beforeEPKcl", probe.begin_text));
}

// What the probe saw, on the one thread that probes.
struct Seen {
  const Library *library = nullptr;
  size_t sequence_at = 0;  // 0: not there, or in several places
  bool named = false;
  bool ended = false;
};
Seen g_seen;

std::unique_ptr<TorchContext> see_start(const TorchRecord &record) {
  const char *name = g_seen.library->name(&record);
  g_seen.named = name != nullptr && std::strcmp(name, kProbeName) == 0;
  size_t places = 0;
  for (size_t at = 0; at + sizeof(int64_t) <= kMostRecord; at += sizeof(int64_t)) {
    int64_t word;
    std::memcpy(&word, reinterpret_cast<const char *>(&record) + at, sizeof(word));
    if (word == kProbe) {
      g_seen.sequence_at = at;
      ++places;
    }
  }
  g_seen.sequence_at = places == 1 ? g_seen.sequence_at : 0;
  return nullptr;
}

void see_end(const TorchRecord &, TorchContext *) {
  g_seen.ended = true;
}

// One record on this thread alone. False unless it arrived with its name, its number in one place, and its end.
bool try_out(Library &library, const Probe &probe) {
  Changing changing;
  alignas(64) static char record[kMostRecord];
  g_seen = {&library};
  TorchCallback callback;
  callback.start = see_start;
  callback.end = see_end;
  callback.scopes[static_cast<size_t>(TorchScope::user)] = true;
  const uint64_t handle = probe.add_thread_callback(callback);
  probe.construct(record, TorchScope::user);
  if (probe.begin != nullptr) {
    probe.begin(record, std::string_view(kProbeName), kProbe);
  } else {
    probe.begin_text(record, kProbeName, kProbe);
  }
  probe.destroy(record);
  library.remove_callback(handle);
  library.sequence_at = g_seen.sequence_at;
  return g_seen.named && g_seen.ended && g_seen.sequence_at != 0;
}

// torch/version.py beside torch/lib: `__version__ = '2.13.0+cpu'`.
std::string version_at(const char *path) {
  std::string place(path);
  for (int up = 0; up < 2; ++up) {
    place.resize(place.find_last_of('/') == std::string::npos ? 0 : place.find_last_of('/'));
  }
  char text[1024];
  const int fd = open((place + "/version.py").c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
  if (fd >= 0) {
    close(fd);
  }
  text[got > 0 ? got : 0] = '\0';
  const char *begin = std::strstr(text, "__version__ = '");
  begin = begin != nullptr ? begin + sizeof("__version__ = '") - 1 : text;
  const char *end = std::strchr(begin, '\'');
  return end != nullptr ? std::string(begin, end) : std::string();
}

// The row of a version, or null.
const TorchAbi *row_of(unsigned major, unsigned minor) {
  for (const TorchAbi &row : kTorchAbis) {
    if (row.major == major && row.minor == minor) {
      return &row;
    }
  }
  return nullptr;
}

}  // namespace

std::string open_library(const char *path, Library &library, std::string &version) {
  version = version_at(path);
  unsigned major = 0, minor = 0;
  const bool known = std::sscanf(version.c_str(), "%u.%u", &major, &minor) == 2;
  const TorchAbi &oldest = kTorchAbis[0];
  if (known && (major < oldest.major || (major == oldest.major && minor < oldest.minor))) {
    return "operators are recorded from PyTorch " + std::to_string(oldest.major) + "." +
           std::to_string(oldest.minor) + " on";
  }
  // Where a thread still loads it, this waits until its constructors have run.
  void *handle = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  Probe probe{};
  if (handle == nullptr || !find_all(handle, library, probe)) {
    return "it does not export the functions that observe operators";
  }
  if (!try_out(library, probe)) {
    return "its observers did not see an operator as expected";
  }
  const TorchAbi *row = row_of(major, minor);
  if (row != nullptr && row->sequence_at != library.sequence_at &&
      row->sequence_at_old != library.sequence_at) {
    return "its records differ from those of its version";
  }
  return {};
}

}  // namespace warplens::agent::torch
