// Opens and closes windows at the begin and end of a chosen range.
// The range that opened a window closes it just after its end, in any thread. If its thread or its
// process ends first, they close it. If the process becomes another program, that program closes
// it. If it is killed, the launcher does (close_abandoned_window).
//
// The protocol of a closing start/end range. An entry's `id` goes 0 (free) -> kTaken -> the range's id
// -> 0. The thread that wins the exchange to kTaken writes `window`, then releases the id; the thread
// that ends the range reads `window`, then wins the exchange back to 0. So `window` belongs to the id
// that was read. An entry whose window is no longer open is stale and may be taken over.
// `g_closing_start_count` only saves the search: while it is 0, no end looks at the entries.
#include "watch.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "agent/session_hook.h"
#include "spool/window.h"

namespace warplens::agent {

std::atomic<uint64_t> g_left_out[1024];
Opener g_opener;
__thread ClosingRange t_closing = {nullptr, 0};

namespace {

// A start/end range that closes a window. At most one window is open, so entries are soon free again.
struct ClosingStart {
  std::atomic<uint64_t> id;
  std::atomic<uint32_t> window;
};
constexpr size_t kClosingStarts = 16;
constexpr uint64_t kTaken = 1;  // no id of a range: the entry is being filled in
ClosingStart g_closing_starts[kClosingStarts];
std::atomic<uint32_t> g_closing_start_count{0};
std::atomic<uint32_t> g_own_window{0};  // the last one that a range of this process opened, and is to close

// Set before any callback is installed.
ControlPage *g_control = nullptr;
bool g_watchful = false;
DomainFilter g_filter = DomainFilter::none;
std::vector<std::string> *g_filtered = nullptr;  // never destroyed: programs make domains until the very end
std::string *g_opener_domain = nullptr;

void leave_out(uint16_t domain) {
  g_left_out[domain / 64].fetch_or(uint64_t{1} << domain % 64, std::memory_order_relaxed);
}

// Before the range begins: the number of the window that it opened and is to close, or 0.
uint32_t open_for_range() {
  if (g_control->trigger != Trigger::nvtx) {
    return 0;  // the recording is over
  }
  int64_t number =
      open_window(g_control, Cause::nvtx, static_cast<uint32_t>(getpid()), 0, g_control->window_limit);
  if (number > 0) {
    for_each_hook<&SessionHook::windows_changed>();
  }
  if (number <= 0 || g_control->trigger_closes == 0) {
    return 0;
  }
  g_own_window.store(static_cast<uint32_t>(number), std::memory_order_relaxed);
  return static_cast<uint32_t>(number);
}

void close(uint32_t window) {
  if (close_window(g_control, Cause::nvtx, window) > 0) {
    for_each_hook<&SessionHook::windows_changed>();
  }
}

bool is_open(uint32_t window) {
  return g_control->gate.load(std::memory_order_acquire) == 2 * window - 1;
}

bool put(uint64_t id, uint32_t window) {
  for (ClosingStart &entry : g_closing_starts) {
    uint64_t known = entry.id.load(std::memory_order_acquire);
    bool stale = known != 0 && !is_open(entry.window.load(std::memory_order_relaxed));
    if (known != kTaken && (known == 0 || stale) &&
        entry.id.compare_exchange_strong(known, kTaken, std::memory_order_acq_rel)) {
      entry.window.store(window, std::memory_order_relaxed);
      entry.id.store(id, std::memory_order_release);
      if (!stale) {
        g_closing_start_count.fetch_add(1, std::memory_order_release);
      }
      return true;
    }
  }
  return false;
}

// The window that a start/end range closes; 0 for any other range.
uint32_t take(uint64_t id) {
  if (id == 0 || g_closing_start_count.load(std::memory_order_acquire) == 0) {
    return 0;
  }
  for (ClosingStart &entry : g_closing_starts) {
    uint64_t known = id;
    if (entry.id.load(std::memory_order_acquire) == id) {
      uint32_t window = entry.window.load(std::memory_order_acquire);
      if (entry.id.compare_exchange_strong(known, 0, std::memory_order_acq_rel)) {
        g_closing_start_count.fetch_sub(1, std::memory_order_relaxed);
        return window;
      }
    }
  }
  return 0;
}

// The program that this process ran before exec opened a window, and its range will not end.
void close_for_earlier_program() {
  uint32_t gate = g_control->gate.load(std::memory_order_acquire);
  if (gate % 2 == 0 || gate / 2 >= kWindows || g_control->trigger_closes == 0) {
    return;
  }
  const CaptureWindow &window = windows_of(g_control)[gate / 2];
  if (window.opened_by.load(std::memory_order_relaxed) == static_cast<uint32_t>(Cause::nvtx) &&
      window.pid.load(std::memory_order_relaxed) == static_cast<uint32_t>(getpid())) {
    close(gate / 2 + 1);
  }
}

// The texts of the control file, of which nothing is trusted.
std::vector<std::string> texts_of(const ControlPage *control) {
  const char *at = reinterpret_cast<const char *>(control) + kControlTexts;
  const char *end = at + kControlTextsSize;
  size_t count = 2 + std::min<size_t>(control->filter_count, kControlTextsSize);
  std::vector<std::string> texts;
  while (texts.size() < count && at < end) {
    size_t size = strnlen(at, static_cast<size_t>(end - at));
    texts.emplace_back(at, size);
    at += size + 1;
  }
  texts.resize(std::max<size_t>(texts.size(), 2));
  return texts;
}

}  // namespace

void start_watching(ControlPage *control, Names &names) {
  bool triggered = control != nullptr && control->trigger == Trigger::nvtx;
  bool filtered = control != nullptr && control->filter != DomainFilter::none && control->filter_count != 0;
  if (!triggered && !filtered) {
    return;
  }
  std::vector<std::string> texts = texts_of(control);
  g_control = control;
  if (triggered) {
    close_for_earlier_program();
    g_opener.any_domain = control->any_domain != 0;
    g_opener_domain = new std::string(texts[1]);
    Busy busy;
    uint32_t message = names.intern(texts[0]);
    g_opener.message = message == 0 ? g_opener.message : message;
  }
  if (filtered) {
    g_filtered = new std::vector<std::string>(texts.begin() + 2, texts.end());
    g_filter = control->filter;
  }
  g_watchful = true;
  meet_domain(0, "");
}

bool is_watchful() {
  return g_watchful;
}

void meet_domain(uint16_t number, std::string_view name) {
  if (g_opener_domain != nullptr && name == *g_opener_domain && (number == 0) == name.empty()) {
    g_opener.domain.store(number, std::memory_order_relaxed);
  }
  if (g_filter != DomainFilter::none) {
    bool named = std::find(g_filtered->begin(), g_filtered->end(), name) != g_filtered->end();
    if (named != (g_filter == DomainFilter::include)) {
      leave_out(number);
    }
  }
}

int push_and_open(ThreadLog &log, uint16_t domain, const Label &label) {
  uint32_t window = open_for_range();
  int level = log.push(domain, label);
  if (window != 0) {
    t_closing = {log.innermost(domain), window};
  }
  return level;
}

void close_after(const EventRecord *slot) {
  if (slot != nullptr && slot == t_closing.slot) {
    close(t_closing.window);
    t_closing = {nullptr, 0};
  }
}

uint64_t start_and_open(ThreadLog &log, uint16_t domain, const Label &label, uint32_t task, uint64_t parent) {
  uint32_t window = open_for_range();
  uint64_t id = log.process()->start_range(log, domain, label, task, parent);
  if (window != 0 && (id == 0 || !put(id, window))) {
    close(window);  // its end would not be found
  }
  return id;
}

bool end_and_close(ThreadLog &log, uint64_t id, uint64_t end, const Change *change) {
  uint32_t window = take(id);
  bool ended = log.process()->end_range(log, id, end, change);
  if (window != 0) {
    close(window);
  }
  return ended;
}

void close_for_thread() {
  if (t_closing.window != 0) {
    close(t_closing.window);
    t_closing = {nullptr, 0};
  }
}

void close_for_process() {
  if (uint32_t window = g_own_window.load(std::memory_order_relaxed)) {
    close(window);
  }
}

void stop_closing() {
  t_closing = {nullptr, 0};
  g_own_window.store(0, std::memory_order_relaxed);
  g_closing_start_count.store(0, std::memory_order_relaxed);
  for (ClosingStart &entry : g_closing_starts) {
    entry.id.store(0, std::memory_order_relaxed);
  }
}

}  // namespace warplens::agent
