// Opens and closes windows without locks.
#include "window.h"

#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "spool/system/clock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace warplens {
namespace {

constexpr uint32_t kLastGate = 2 * kWindows;

// Not earlier than what the thread has read before: the counter alone may be read ahead.
uint64_t now_after(const ClockParams &clock) {
#if defined(__x86_64__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
  return now_ns(clock);
}

// The gate has moved: wakes those that wait for that, in all processes.
void tell(const ControlPage *control) {
  int saved = errno;
  syscall(SYS_futex, &control->gate, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  errno = saved;
}

// How many of the first windows are of `cause`; of one that was opened this moment nobody may know it yet.
uint32_t opened_by(const ControlPage *control, Cause cause, uint32_t windows) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < windows; ++i) {
    uint32_t by = windows_of(control)[i].opened_by.load(std::memory_order_relaxed);
    count += by == static_cast<uint32_t>(cause) || by == static_cast<uint32_t>(Cause::none) ? 1 : 0;
  }
  return count;
}

bool can_write_window(const ControlPage *control, uint32_t number) {
  return can_write(control) && can_write(control, windows_of(control) + number);
}

}  // namespace

bool can_write(const ControlPage *control, const void *at) {
  if (control->has_space != 0) {
    return true;
  }
  int saved = errno;
  auto page = reinterpret_cast<uintptr_t>(at) / kPage * kPage;
  // Before Linux 5.14 there is no such question: EINVAL.
  bool refused = madvise(reinterpret_cast<void *>(page), kPage, MADV_POPULATE_WRITE) != 0 && errno == EFAULT;
  errno = saved;
  return !refused;
}

int64_t open_window(ControlPage *control, Cause cause, uint32_t pid, uint64_t open_ns, uint32_t limit) {
  uint32_t gate = settle_windows(control);
  if (gate % 2 != 0) {
    return 0;
  }
  if (gate >= kLastGate) {
    return -ENOSPC;
  }
  if (limit != 0 && opened_by(control, cause, gate / 2) >= limit) {
    return 0;
  }
  if (!can_write_window(control, gate / 2)) {
    return -ENOSPC;
  }
  CaptureWindow &window = windows_of(control)[gate / 2];
  uint64_t none = 0;
  if (open_ns != 0) {
    window.open_ns.compare_exchange_strong(none, open_ns, std::memory_order_acq_rel);
  }
  uint32_t expected = gate;
  bool mine = control->gate.compare_exchange_strong(expected, gate + 1, std::memory_order_acq_rel);
  if (mine) {
    window.opened_by.store(static_cast<uint32_t>(cause), std::memory_order_relaxed);
    window.pid.store(pid, std::memory_order_relaxed);
  }
  settle_windows(control);
  if (mine) {
    tell(control);
  }
  return mine ? gate / 2 + 1 : 0;
}

int64_t close_window(ControlPage *control, Cause cause, int64_t number) {
  uint32_t gate = settle_windows(control);
  if (gate % 2 == 0 || gate >= kLastGate || (number != 0 && number != gate / 2 + 1) ||
      !can_write_window(control, gate / 2)) {
    return 0;
  }
  CaptureWindow &window = windows_of(control)[gate / 2];
  uint32_t expected = gate;
  bool mine = control->gate.compare_exchange_strong(expected, gate + 1, std::memory_order_acq_rel);
  if (mine) {
    window.closed_by.store(static_cast<uint32_t>(cause), std::memory_order_relaxed);
  }
  settle_windows(control);
  if (mine) {
    tell(control);
  }
  return mine ? gate / 2 + 1 : 0;
}

uint32_t settle_windows(ControlPage *control) {
  uint32_t gate = control->gate.load(std::memory_order_acquire);
  if (gate == 0 || gate > kLastGate) {
    return gate;
  }
  CaptureWindow *last = windows_of(control) + (gate - 1) / 2;
  uint64_t none = 0;
  if (gate % 2 == 0) {
    if (last->close_ns.load(std::memory_order_relaxed) == 0 && can_write(control, last)) {
      uint64_t open = last->open_ns.load(std::memory_order_relaxed);
      last->close_ns.compare_exchange_strong(none, std::max(now_after(control->clock), open + 1),
                                             std::memory_order_acq_rel);
    }
  } else if (last->open_ns.load(std::memory_order_relaxed) == 0 && can_write(control, last)) {
    uint64_t before = gate == 1 ? 1 : last[-1].close_ns.load(std::memory_order_relaxed);
    last->open_ns.compare_exchange_strong(none, std::max(now_after(control->clock), before),
                                          std::memory_order_acq_rel);
  }
  return gate;
}

int64_t close_abandoned_window(ControlPage *control) {
  uint32_t gate = settle_windows(control);
  if (gate % 2 == 0 || gate >= kLastGate) {
    return 0;
  }
  auto pid = static_cast<pid_t>(windows_of(control)[gate / 2].pid.load(std::memory_order_relaxed));
  int saved = errno;
  bool gone = pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;
  errno = saved;
  return gone ? close_window(control, Cause::end, gate / 2 + 1) : 0;
}

int64_t keep_window(ControlPage *control, Cause cause, uint64_t span, bool go_on, uint64_t now) {
  uint32_t gate = control->gate.load(std::memory_order_acquire);
  if (gate % 2 == 0 || gate >= kLastGate) {
    return 0;
  }
  if ((go_on && gate + 1 >= kLastGate) || !can_write_window(control, gate / 2) ||
      (go_on && !can_write_window(control, gate / 2 + 1))) {
    return -ENOSPC;
  }
  CaptureWindow &window = windows_of(control)[gate / 2];
  uint64_t open = window.open_ns.load(std::memory_order_relaxed);
  uint64_t first = std::max(open, now - std::min(span, now));
  uint64_t last = std::max(now, first + 1);
  uint64_t none = 0;
  bool mine = window.close_ns.compare_exchange_strong(none, last, std::memory_order_acq_rel);
  if (!mine) {
    control->gate.compare_exchange_strong(gate, gate + 1, std::memory_order_acq_rel);
    return 0;
  }
  window.closed_by.store(static_cast<uint32_t>(cause), std::memory_order_relaxed);
  // Later than the end is set: ranges that pop meanwhile end after both, so that they are in the window either way.
  window.open_ns.store(first, std::memory_order_release);
  int64_t number = gate / 2 + 1;
  if (go_on) {
    CaptureWindow &next = windows_of(control)[gate / 2 + 1];
    none = 0;
    if (next.open_ns.compare_exchange_strong(none, last, std::memory_order_acq_rel)) {
      next.opened_by.store(static_cast<uint32_t>(Cause::start), std::memory_order_relaxed);
    }
  }
  if (!control->gate.compare_exchange_strong(gate, gate + (go_on ? 2 : 1), std::memory_order_acq_rel) &&
      go_on && gate == 2 * static_cast<uint32_t>(number)) {
    control->gate.compare_exchange_strong(gate, gate + 1,
                                          std::memory_order_acq_rel);  // somebody helped half-way
  }
  tell(control);
  return number;
}

uint32_t window_around(const ControlPage *control, uint64_t start, uint64_t end, bool *clipped) {
  uint32_t gate = std::min(control->gate.load(std::memory_order_acquire), kLastGate);
  const CaptureWindow *windows = windows_of(control);
  for (uint32_t i = (gate + 1) / 2; i-- > 0;) {
    uint64_t open = windows[i].open_ns.load(std::memory_order_relaxed);
    uint64_t close = windows[i].close_ns.load(std::memory_order_relaxed);
    bool closed = close != 0;
    if (open == 0) {
      continue;  // it opens this moment: what has ended lies before it
    }
    if (closed && close <= start) {
      return 0;  // and so did all before it
    }
    if (open < end || (open == end && start == end)) {
      *clipped = start < open || (closed && end > close);
      return i + 1;
    }
  }
  return 0;
}

bool in_closed_window(const ControlPage *control, uint64_t start, uint64_t end) {
  uint32_t gate = std::min(control->gate.load(std::memory_order_acquire), kLastGate);
  const CaptureWindow *windows = windows_of(control);
  for (uint32_t i = (gate + 1) / 2; i-- > 0;) {
    uint64_t close = windows[i].close_ns.load(std::memory_order_acquire);
    if (close == 0) {
      continue;
    }
    if (close <= start) {
      return false;  // and so did all before it
    }
    if (windows[i].open_ns.load(std::memory_order_acquire) <= end) {
      return true;
    }
  }
  return false;
}

}  // namespace warplens
