// Calls of the C library, as the wrappers of the larger stub hand them over.
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "agent/hooks/cpu.h"
#include "agent/hooks/descriptors.h"
#include "agent/session.h"
#include "agent/source.h"

namespace warpline::agent {
namespace {

uint32_t text_of(const WarplineOsCall &call) {
  uint32_t text = call.fd >= 0 ? descriptor_text(call.fd) : 0;
  if (text == 0 && call.peer != nullptr) {
    text = address_text(call.peer, call.peer_size);
  }
  if (text == 0 && call.text != nullptr) {
    text = text_number(call.text);
  }
  return text;
}

bool is_open() {
  ControlPage *control = control_page();
  return control == nullptr || control->gate.load(std::memory_order_relaxed) % 2 == 1;
}

// Also in signal handlers, and in children of vfork.
void take(const WarplineOsCall *call) {
  if (t_busy || !is_open()) {
    return;  // it is ours, or nobody wants it
  }
  Lane *own = lane();
  if (own == nullptr) {
    return;
  }
  OsCallRecord record{};
  record.head = {RecordType::os_call, static_cast<uint8_t>(call->flags), static_cast<uint16_t>(call->error),
                 text_number(call->name)};
  record.start = call->start;
  record.end = call->end;
  record.result = call->result;
  record.object = call->object;
  record.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  record.fd = call->fd;
  record.text = text_of(*call);
  own->append(record, record.start);
}

uint64_t ticks(const ClockParams &clock, uint64_t ns) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(ns) << clock.shift) / clock.mult);
}

void begin(const CpuSettings &settings, WarplineTap &tap) {
  const ClockParams &clock = process_clock();
  tap.clock_kind = static_cast<uint32_t>(clock.kind);
  tap.clock_shift = clock.shift;
  tap.clock_t0 = clock.t0;
  tap.clock_base_ns = clock.base_ns;
  tap.clock_mult = clock.mult;
  tap.call_ticks = ticks(clock, settings.os_threshold_ns);
  tap.file_ticks = (settings.flags & kCpuFileAccess) != 0 ? 0 : tap.call_ticks;
  tap.os_call = take;
  tap.descriptor = forget_descriptor;
  __atomic_fetch_or(&tap.on, WARPLINE_TAP_OS_CALLS, __ATOMIC_RELEASE);
}

}  // namespace

extern const CpuSource kOsCallSource{kCpuOsCalls | kCpuFileAccess, begin, nullptr, nullptr, nullptr};

}  // namespace warpline::agent
