// Writes definitions and operations to the calling thread's log.
#include "define.h"

#include "agent/watch.h"
#include "registry.h"

namespace warplens::agent {

uint64_t new_id() {
  static std::atomic<uint64_t> last{kDynamicIds};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

void define(uint16_t domain, Kind kind, uint64_t id, const std::string &json) {
  ThreadLog *log = thread_log();  // without one the definition is kept for a recording to come
  Busy busy;
  if (!busy) {
    if (log != nullptr) {
      log->process()->file().count(kInSignal);
    }
    return;
  }
  MetaRecord record{};
  record.id = id;
  record.start = now_ns(log == nullptr ? process_clock() : log->clock());
  record.thread = log == nullptr ? kNoThread : log->index();
  if (Names *all = names()) {
    all->define(domain, static_cast<uint32_t>(kind), record, json);
  }
}

void forget(uint16_t domain, Kind kind, uint64_t id) {
  Busy busy;
  if (Names *all = busy ? names() : nullptr) {
    all->forget(domain, static_cast<uint32_t>(kind), id);
  }
}

void operate(uint16_t domain, OperationAction action, uint64_t object, uint64_t value) {
  if (ThreadLog *log = is_left_out(domain) ? nullptr : thread_log()) {
    log->operate(domain, action, object, value, now_ns(log->clock()));
  }
}

}  // namespace warplens::agent
