// Records calls of the C library that the stub's wrappers report.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "agent/hooks/cpu.h"
#include "agent/hooks/descriptors.h"
#include "agent/hooks/known_texts.h"
#include "agent/hooks/unwind.h"
#include "agent/session.h"
#include "agent/source.h"
#include "spool/system/uncancelled.h"

namespace warplens::agent {
namespace {

uint64_t g_threshold_ns = 0;
uint64_t g_stack_ns = UINT64_MAX;
uint32_t g_stack_depth = 0;

KnownTexts g_names;

uint32_t name_number(const char *literal) {
  uint64_t hash = reinterpret_cast<uintptr_t>(literal) * 0x9e3779b97f4a7c15u;
  return g_names.get(hash, [&] { return text_number(literal); });
}

struct Target {
  uint32_t text = 0;
  bool is_file = false;
};

Target target_of(const WarplensOsCall &call) {
  Target target;
  if (call.fd >= 0) {
    DescriptorText known = descriptor_text(call.fd, (call.flags & WARPLENS_OS_CLOSED) == 0);
    target = {known.number, known.is_path};
  } else if (call.text != nullptr) {
    target.is_file = true;
  }
  if (target.text == 0 && call.text != nullptr) {
    target.text = any_text_number(call.text);
  }
  if (call.peer != nullptr && call.error != 0) {  // else the descriptor knows
    uint32_t peer = address_text(call.peer, call.peer_size);
    target.text = peer != 0 ? peer : target.text;
  }
  return target;
}

uint32_t stack_of_caller() {
  Unwinder unwind = g_unwinder.load(std::memory_order_acquire);
  if (unwind == nullptr) {
    return 0;
  }
  ProcessLog *log = open_log();
  Busy busy;
  return log != nullptr && busy ? unwind(*log, g_stack_depth) : 0;
}

bool is_open() {
  ControlPage *control = control_page();
  return control == nullptr || control->gate.load(std::memory_order_relaxed) % 2 == 1;
}

// The thread that called; a child of vfork, which is another process on its parent's memory, counts as the thread that waits for it.
uint32_t caller() {
  static __thread uint32_t own = 0;
  auto tid = static_cast<uint32_t>(syscall(SYS_gettid));
  if (tid != own && (own == 0 || !is_guest())) {
    own = tid;
  }
  return own;
}

// Also in signal handlers, and in children of vfork.
void take(const WarplensOsCall *call) {
  if (t_busy || !is_open()) {
    return;  // it is ours, or nobody wants it
  }
  Uncancelled uncancelled;
  Lane *own = lane();
  if (own == nullptr) {
    return;
  }
  Target target = target_of(*call);
  uint64_t duration = call->end - call->start;
  if (!target.is_file && duration < g_threshold_ns) {
    return;  // only file calls were requested
  }
  OsCallRecord record{};
  uint8_t flags = target.is_file && (call->flags & WARPLENS_OS_FILE) != 0 ? kOsFile : 0;
  record.head = {RecordType::os_call, flags, static_cast<uint16_t>(call->error), name_number(call->name)};
  record.start = call->start;
  record.end = call->end;
  record.result = call->result;
  record.object = call->object;
  record.tid = caller();
  record.fd = call->fd;
  record.text = target.text;
  record.stack = duration >= g_stack_ns ? stack_of_caller() : 0;
  own->append(record, record.start);
}

// Rounded up: a call of the threshold is in.
uint64_t ticks(const ClockParams &clock, uint64_t ns) {
  return static_cast<uint64_t>(((static_cast<unsigned __int128>(ns) << clock.shift) + clock.mult - 1) /
                               clock.mult);
}

void begin(const CpuSettings &settings, WarplensTap &tap) {
  g_threshold_ns = settings.os_threshold_ns;
  g_stack_ns = settings.os_backtrace_ns;
  g_stack_depth = settings.stack_depth;
  const ClockParams &clock = process_clock();
  tap.call_ticks = ticks(clock, settings.os_threshold_ns);
  tap.file_ticks = (settings.flags & kCpuFileAccess) != 0 ? 0 : tap.call_ticks;
  tap.os_call = take;
  tap.descriptor = forget_descriptor;
  __atomic_fetch_or(&tap.on, WARPLENS_TAP_OS_CALLS, __ATOMIC_RELEASE);
}

}  // namespace

extern const CpuSource kOsCallSource{kCpuOsCalls | kCpuFileAccess, begin, nullptr, nullptr, nullptr};

}  // namespace warplens::agent
