// Records the waits of threads in a Python without a GIL.
// They wait for locks of objects, and for each other when all have to stand still. CPython keeps a
// waiting thread's semaphore on its stack, right behind the address of the awaited object; the
// larger stub sees the semaphore.
#include <link.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "agent/python/memory/layout.h"
#include "agent/python/memory/memory.h"
#include "agent/session.h"
#include "parts.h"
#include "threads.h"

namespace warplens::agent::python {
namespace {

constexpr uintptr_t kMutexOfObject = 10;  // its own lock, in the head of an object
constexpr uintptr_t kStopBytes = 8;       // the lock and the event of the thread that stops all
constexpr size_t kMostName = 80;
constexpr uint32_t kNewestParks = 0x030f;  // how it waits is no promise of CPython
constexpr char kUnnamed[] = "(inside CPython)";

WarplensTap *g_tap = nullptr;
uint64_t g_threshold = 0;
uintptr_t g_type_type = 0;
const void *g_probe = nullptr;  // what our own wait is for, while we look whether waits are as we know them
bool g_probe_seen = false;

// Its text is the type's, and may be gone: copied to the end of a page at most.
bool read_name(uintptr_t address, char *name) {
  size_t size = std::min<size_t>(kMostName, 4096 - address % 4096);
  if (!copy_memory(name, address, size)) {
    return false;
  }
  if (std::memchr(name, 0, size) == nullptr &&
      (size == kMostName || !copy_memory(name + size, address + size, kMostName - size))) {
    return false;
  }
  const auto *end = static_cast<const char *>(std::memchr(name, 0, kMostName));
  return end != nullptr && end != name &&
         std::all_of(static_cast<const char *>(name), end, [](char one) { return one > ' ' && one < 127; });
}

// The name of the type of what may be an object at `address`. Nothing of it is believed: its type has to be one whose type is `type`, or
// derived from that.
bool name_of_type(const PythonRuntime &python, uintptr_t address, char *name) {
  const PythonLayout &at = python.at;
  uintptr_t type = 0;
  uintptr_t meta = 0;
  uintptr_t base = 0;
  uintptr_t text = 0;
  if (!copy_memory(type, address + at.object_type) || type % 8 != 0 ||
      !copy_memory(meta, type + at.object_type) || meta % 8 != 0 ||
      (meta != g_type_type && (!copy_memory(base, meta + at.object_type) || base != g_type_type))) {
    return false;
  }
  return copy_memory(text, type + at.object_type + 2 * sizeof(uintptr_t)) && read_name(text, name);
}

bool is_lock_of_program(const char *name) {
  return std::strcmp(name, "_thread.lock") == 0 || std::strcmp(name, "_thread.RLock") == 0;
}

// What a lock at `address` belongs to: an object whose own it is, or a lock of the program.
std::string_view name_of_lock(const PythonRuntime &python, uintptr_t address, char *name) {
  if (address % 8 == kMutexOfObject % 8 && name_of_type(python, address - kMutexOfObject, name)) {
    return name;
  }
  if (address % 8 == 0 && name_of_type(python, address - head_size(), name) && is_lock_of_program(name)) {
    return name;
  }
  return kUnnamed;
}

// The state of the calling thread itself, which another one has to change.
bool is_own_state(const PythonRuntime &python, const Thread &thread, uintptr_t address) {
  uint64_t native = 0;
  return copy_memory(native, address - python.at.thread_state + python.at.thread_native) &&
         native == thread.number;
}

// A thread that stops all others waits until they stand, or until another one has finished doing so.
bool is_stop(const PythonRuntime &python, uintptr_t address) {
  uintptr_t first = 0;
  if (address - (python.address + python.at.runtime_stop) < kStopBytes) {
    return true;
  }
  copy_memory(first, python.address + python.at.runtime_interpreters);
  uintptr_t next = 0;
  for (int i = 0; first != 0 && i < 64; ++i, first = next) {
    if (address - (first + python.at.interpreter_stop) < kStopBytes) {
      return true;
    }
    if (!copy_memory(next, first + python.at.interpreter_next)) {
      break;
    }
  }
  return false;
}

void on_parked(const void *semaphore, uint64_t start, uint64_t end) {
  const PythonRuntime *python = known_python();
  uintptr_t address = 0;
  std::memcpy(&address, static_cast<const char *>(semaphore) - sizeof(address), sizeof(address));
  if (g_probe != nullptr && address == reinterpret_cast<uintptr_t>(g_probe)) {
    g_probe_seen = true;
    return;
  }
  Thread *thread = this_thread();
  if (python == nullptr || thread == nullptr || gate_now() % 2 == 0 || end - start < g_threshold) {
    return;
  }
  const int saved = errno;
  char name[kMostName];
  if (is_own_state(*python, *thread, address)) {
    write_span({.kind = SpanKind::pause, .name = text_number("stopped"), .start = start, .end = end});
  } else if (is_stop(*python, address)) {
    write_span(
        {.kind = SpanKind::pause, .name = text_number("stops the others"), .start = start, .end = end});
  } else {
    write_span({.kind = SpanKind::lock,
                .name = text_number(name_of_lock(*python, address, name)),
                .start = start,
                .end = end});
  }
  errno = saved;
}

struct Code {
  uintptr_t inside;
  uintptr_t begin, end;
};

int find_code(dl_phdr_info *info, size_t, void *opaque) {
  auto &code = *static_cast<Code *>(opaque);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) &part = info->dlpi_phdr[i];
    uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && code.inside - begin < part.p_memsz) {
      code.begin = begin;
      code.end = begin + part.p_memsz;
      return 1;
    }
  }
  return 0;
}

// A wait by the agent, of a nanosecond, which the stub reports if this Python waits as we know it.
bool waits_as_known() {
  static const uint8_t there = 0;
  const uint8_t expected = 0;
  g_probe_seen = false;
  g_probe = &there;
  g_python.park(&there, &expected, sizeof(expected), 1, nullptr, 0);
  g_probe = nullptr;
  return g_probe_seen;
}

}  // namespace

void begin_parks(WarplensTap &tap, uint32_t threshold_ns) {
  g_tap = &tap;
  g_threshold = threshold_ns;
}

bool install_parks(Interpreter &interpreter) {
  const PythonRuntime *python = find_python();
  if (interpreter.number != 0) {
    return true;  // the first one has seen to it
  }
  if (python == nullptr || !python->is_known || g_python.park == nullptr || g_python.version > kNewestParks) {
    cpu_notice(CpuNotice::parks_unknown, 0, python != nullptr ? python->version : "");
    return false;
  }
  Held name(g_python.PyUnicode_FromStringAndSize("", 0));
  Held text_type(g_python.PyObject_Type(name.get()));
  Held type_type(g_python.PyObject_Type(text_type.get()));
  g_type_type = reinterpret_cast<uintptr_t>(type_type.get());
  Code code{reinterpret_cast<uintptr_t>(g_python.park), 0, 0};
  dl_iterate_phdr(find_code, &code);
  g_tap->parked = on_parked;
  g_tap->parks_begin = code.begin;
  g_tap->parks_end = code.end;
  __atomic_fetch_or(&g_tap->on, WARPLENS_TAP_PARKS, __ATOMIC_RELEASE);
  if (waits_as_known()) {
    return true;
  }
  __atomic_fetch_and(&g_tap->on, ~WARPLENS_TAP_PARKS, __ATOMIC_RELEASE);
  cpu_notice(CpuNotice::parks_unknown, 0, python->version);
  return false;
}

}  // namespace warplens::agent::python
