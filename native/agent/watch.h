// Checks each event against the domain filter and the range that opens windows.
// Sources install callbacks with these checks only if is_watchful() is true; the others pay
// nothing.
#pragma once

#include "source.h"
#include "warplens/format.h"

namespace warplens::agent {

//! Reads the requested ranges, before any callback is installed. `control` stays mapped.
void start_watching(ControlPage *control, Names &names);

//! Whether there is anything to look for; never changes after prepare().
bool is_watchful();

//! [MT] A domain of the program has got its number.
void meet_domain(uint16_t number, std::string_view name);

// Domains that are left out, a bit for each; all zero without a filter.
extern std::atomic<uint64_t> g_left_out[1024];

//! [MT][HOT] Whether nothing of a domain is recorded.
inline bool is_left_out(uint16_t domain) {
  return (g_left_out[domain / 64].load(std::memory_order_relaxed) >> domain % 64 & 1) != 0;
}

// The range that opens windows: its message, 0xffffffff where there is none, and its domain.
struct Opener {
  uint32_t message = 0xffffffff;
  std::atomic<uint32_t> domain{0xffffffff};  // not known yet
  bool any_domain = false;
};
extern Opener g_opener;

//! [MT][HOT] Whether a range with this message opens a window.
inline bool opens_window(uint16_t domain, uint32_t message) {
  return message == g_opener.message &&
         (g_opener.any_domain || domain == g_opener.domain.load(std::memory_order_relaxed));
}

// The push/pop range of this thread that closes a window when it ends; 0 = none.
struct ClosingRange {
  const EventRecord *slot;
  uint32_t window;
};
extern __thread ClosingRange t_closing;

// [MT] Ranges that may be it: as the functions of ThreadLog and ProcessLog of the same names.
int push_and_open(ThreadLog &log, uint16_t domain, const Label &label);
void close_after(const EventRecord *slot);
uint64_t start_and_open(ThreadLog &log, uint16_t domain, const Label &label, uint32_t task, uint64_t parent);
bool end_and_close(ThreadLog &log, uint64_t id, uint64_t end, const Change *change);

template <bool watchful>
[[gnu::always_inline]] inline int push_range(ThreadLog &log, uint16_t domain, const Label &label) {
  if constexpr (watchful) {
    if (opens_window(domain, label.name)) [[unlikely]] {
      return push_and_open(log, domain, label);
    }
  }
  return log.push(domain, label);
}

template <bool watchful, typename... Changes>
[[gnu::always_inline]] inline int pop_range(ThreadLog &log, uint16_t domain, uint64_t end,
                                            const Changes &...change) {
  if constexpr (watchful) {
    if (t_closing.window != 0) [[unlikely]] {
      const EventRecord *slot = log.innermost(domain);
      int level = log.pop(domain, end, change...);
      close_after(slot);
      return level;
    }
  }
  return log.pop(domain, end, change...);
}

template <bool watchful>
[[gnu::always_inline]] inline uint64_t start_range(ThreadLog &log, uint16_t domain, const Label &label,
                                                   uint32_t task = 0, uint64_t parent = 0) {
  if constexpr (watchful) {
    if (opens_window(domain, label.name)) [[unlikely]] {
      return start_and_open(log, domain, label, task, parent);
    }
  }
  return log.process()->start_range(log, domain, label, task, parent);
}

template <bool watchful>
[[gnu::always_inline]] inline bool end_range(ThreadLog &log, uint64_t id, uint64_t end,
                                             const Change *change = nullptr) {
  if constexpr (watchful) {
    return end_and_close(log, id, end, change);
  }
  return log.process()->end_range(log, id, end, change);
}

//! The thread ends, or the process does: a range of it that closes a window never will.
void close_for_thread();
void close_for_process();

//! [FORK] In a child: the windows are its parent's.
void stop_closing();

}  // namespace warplens::agent
