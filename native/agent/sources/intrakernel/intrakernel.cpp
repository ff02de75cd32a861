// Implements the C API of in-kernel buffers (warplens.h).
// A program announces its launches. A buffer is read when it is used again, when the program allows
// it, and when a window or the recording ends.
#include "intrakernel.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string_view>
#include <vector>

#include "agent/hooks/intrakernel.h"
#include "agent/session.h"
#include "agent/source.h"
#include "spool/system/clock.h"
#include "spool/system/uncancelled.h"
#include "warplens/warplens.h"

#define WARPLENS_EXPORT __attribute__((visibility("default")))

namespace warplens::agent {
namespace {

constexpr unsigned kPatienceMs = 60'000;      // for a kernel, where the program waits for it anyway
constexpr size_t kLongestText = 32768;        // longer ones would be cut in the spool
constexpr size_t kBuffers = size_t{1} << 20;  // of a process at once

struct Buffer {
  uint32_t number = 0;
  uint64_t bytes = 0;
  BufferPlace place{};
  int32_t device = -1;
  bool is_parents = false;  // device memory, in a fork child
  std::string tags;
  std::string name;
  IntrakernelLaunch launch;  // not stored yet
};

struct State {
  std::mutex
      mutex;  // held for moments only: a thread may be waiting for the GPU, which waits for another thread
  std::vector<Buffer> buffers;  // in order of number
  uint32_t last_buffer = 0;
  uint32_t last_launch = 0;
};

// In static storage and never destroyed: launches may come after our exit handlers ran.
alignas(State) char g_storage[sizeof(State)];
State &state() {
  static State *made = new (g_storage) State;
  return *made;
}

std::string_view text_of(const char *text) {
  return text == nullptr ? std::string_view{} : std::string_view(text).substr(0, kLongestText);
}

uint64_t now_ms() {
  return clock_ns(CLOCK_MONOTONIC) / 1'000'000;
}

// The caller holds the mutex.
Buffer *find(State &all, uint32_t number) {
  auto found = std::lower_bound(all.buffers.begin(), all.buffers.end(), number,
                                [](const Buffer &buffer, uint32_t wanted) { return buffer.number < wanted; });
  return found != all.buffers.end() && found->number == number ? &*found : nullptr;
}

bool is_window_open(const ProcessLog &log) {
  ControlPage *control = log.control();
  return control == nullptr || control->gate.load(std::memory_order_relaxed) % 2 == 1;
}

// Whether this process may be asked anything; a child of vfork is another one in our memory.
bool is_usable() {
  return prepare() && !is_guest();
}

// Takes the launch out of a buffer, so that nobody else stores it; false where there is none. The caller holds nothing.
bool take(uint32_t number, IntrakernelSource &source) {
  Busy busy;
  if (!busy) {
    return false;
  }
  State &all = state();
  std::lock_guard lock(all.mutex);
  Buffer *buffer = find(all, number);
  if (buffer == nullptr || buffer->launch.number == 0) {
    return false;
  }
  source = {buffer->place, buffer->bytes, buffer->tags, std::exchange(buffer->launch, {})};
  return true;
}

// It did not end in time.
void put_back(uint32_t number, const IntrakernelSource &source) {
  Busy busy;
  if (!busy) {
    return;
  }
  State &all = state();
  std::lock_guard lock(all.mutex);
  Buffer *buffer = find(all, number);
  if (buffer != nullptr && buffer->launch.number == 0) {
    buffer->launch = source.launch;
  }
}

void store(uint32_t number, uint64_t until_ms, bool whole_context, bool last) {
  IntrakernelSource source;
  ProcessLog *log = open_log();
  if (log == nullptr || !take(number, source) || source.launch.recording != log->generation()) {
    return;  // the recording that it was in is over
  }
  if (!store_intrakernel_launch(*log, source, until_ms, whole_context, last)) {
    put_back(number, source);
  }
}

std::vector<uint32_t> pending() {
  std::vector<uint32_t> found;
  Busy busy;
  State &all = state();
  std::lock_guard lock(all.mutex);
  for (const Buffer &buffer : all.buffers) {
    if (buffer.launch.number != 0) {
      found.push_back(buffer.number);
    }
  }
  return found;
}

// Before the driver shuts down, if the program has started it: exit handlers run in the reverse order.
void store_at_exit() {
  if (is_usable() && !is_unnoticed_child()) {
    store_intrakernel_buffers(2000, true);
  }
}

uint32_t add(uint64_t address, uint64_t bytes, bool on_device, const char *tags, const char *name) {
  int32_t device = on_device ? device_of(address) : -1;
  Busy busy;
  if (!busy) {
    return 0;
  }
  static const int registered = std::atexit(store_at_exit);
  static_cast<void>(registered);
  State &all = state();
  std::lock_guard lock(all.mutex);
  if (all.buffers.size() >= kBuffers) {
    return 0;
  }
  Buffer buffer;
  buffer.place = {address, on_device};
  buffer.bytes = bytes;
  buffer.device = device;
  buffer.tags = text_of(tags);
  buffer.name = text_of(name);
  buffer.number = all.last_buffer + 1;
  all.buffers.push_back(std::move(buffer));
  return ++all.last_buffer;
}

int launch(ProcessLog &log, uint32_t number, uint32_t generation, uint64_t stream, const char *name) {
  Busy busy;
  if (!busy) {
    return 0;
  }
  std::string_view text = text_of(name);
  uint32_t called = text.empty() ? 0 : log.intern(text);
  State &all = state();
  std::lock_guard lock(all.mutex);
  Buffer *buffer = find(all, number);
  if (buffer == nullptr || buffer->is_parents) {
    return 0;
  }
  IntrakernelLaunchRecord record{};
  record.head = {RecordType::intrakernel_launch, 0, 0, called};
  record.start = now_ns(log.clock());
  record.address = buffer->place.address;
  record.stream = stream;
  record.launch = ++all.last_launch;
  record.buffer = number;
  record.generation = generation;
  record.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  record.buffer_name = buffer->name.empty() ? 0 : log.intern(buffer->name);
  record.device = buffer->device;
  if (!WideLog::Writer(log.wide()).append(record, record.start)) {
    return 0;
  }
  buffer->launch = {record.launch, generation, log.generation(), stream};
  return 1;
}

}  // namespace

void store_intrakernel_buffers(unsigned patience_ms, bool whole_context) {
  uint64_t until = now_ms() + patience_ms;
  for (uint32_t number : pending()) {
    store(number, until, whole_context, false);
  }
}

void abandon_intrakernel() {
  State &all = state();
  new (&all.mutex) std::mutex;
  renew_intrakernel_store();
  for (Buffer &buffer : all.buffers) {
    buffer.launch = {};
    buffer.is_parents = buffer.is_parents || buffer.place.on_device;
  }
}

}  // namespace warplens::agent

using namespace warplens::agent;

extern "C" {

WARPLENS_EXPORT uint32_t warplens_intrakernel_register(uint64_t address, uint64_t bytes, uint32_t where,
                                                       const char *tags, const char *name) {
  warplens::Uncancelled uncancelled;
  if (address == 0 || bytes == 0 || !is_usable()) {
    return 0;
  }
  try {
    return add(address, bytes, where == WARPLENS_INTRAKERNEL_DEVICE, tags, name);
  } catch (...) {
    return 0;  // out of memory
  }
}

WARPLENS_EXPORT void warplens_intrakernel_tags(uint32_t buffer, const char *tags) {
  warplens::Uncancelled uncancelled;
  warplens::Busy busy;
  if (!busy || !is_usable()) {
    return;
  }
  try {
    std::lock_guard lock(state().mutex);
    if (Buffer *known = find(state(), buffer)) {
      known->tags = text_of(tags);
    }
  } catch (...) {
    // Out of memory: the tags that were known stay.
  }
}

WARPLENS_EXPORT int warplens_intrakernel_launch(uint32_t buffer, uint32_t generation, uint64_t stream,
                                                const char *name) {
  warplens::Uncancelled uncancelled;
  if (buffer == 0 || !is_usable()) {
    return 0;
  }
  try {
    store(buffer, now_ms() + kPatienceMs, true, true);
    warplens::ProcessLog *log = open_log();
    return log != nullptr && is_window_open(*log) ? launch(*log, buffer, generation, stream, name) : 0;
  } catch (...) {
    return 0;  // out of memory
  }
}

WARPLENS_EXPORT void warplens_intrakernel_store(uint32_t buffer) {
  warplens::Uncancelled uncancelled;
  if (!is_usable()) {
    return;
  }
  try {
    if (buffer == 0) {
      store_intrakernel_buffers(kPatienceMs, true);
    } else {
      store(buffer, now_ms() + kPatienceMs, true, true);
    }
  } catch (...) {
    // Out of memory: it is tried again later.
  }
}

WARPLENS_EXPORT void warplens_intrakernel_unregister(uint32_t buffer) {
  warplens::Uncancelled uncancelled;
  if (buffer == 0 || !is_usable()) {
    return;
  }
  try {
    store(buffer, now_ms() + kPatienceMs, true, true);
    warplens::Busy busy;
    if (busy) {
      std::lock_guard lock(state().mutex);
      std::erase_if(state().buffers, [buffer](const Buffer &known) { return known.number == buffer; });
    }
  } catch (...) {
    // Out of memory.
  }
}

}  // extern "C"
