// Writes names and definitions, at any time.
#include <cerrno>

#include "source.h"

namespace warplens::agent {
namespace {

template <typename Result, typename Action>
Result with_names(const Action &action) {
  Busy busy;
  if (!busy) {
    if (const ThreadLog *log = t_log) {
      log->process()->file().count(kInSignal);
    }
    return Result{};
  }
  int saved = errno;
  Names *all = names();
  Result result = all != nullptr ? action(*all) : Result{};
  errno = saved;
  return result;
}

}  // namespace

uint32_t text_number(std::string_view text) {
  return with_names<uint32_t>([&](Names &names) { return names.intern(text); });
}

uint32_t passing_number(std::string_view text) {
  return with_names<uint32_t>([&](Names &names) { return names.passing(text); });
}

uint16_t domain_number(std::string_view name) {
  return with_names<uint16_t>([&](Names &names) { return names.domain(name); });
}

void describe(RecordHead head, const MetaRecord &record) {
  with_names<bool>([&](Names &names) {
    names.describe(head, record);
    return true;
  });
}

bool define(uint16_t domain, uint32_t kind, uint64_t id, std::string_view json) {
  return with_names<bool>([&](Names &names) {
    const ThreadLog *log = t_log;
    bool current = log != nullptr && log->generation() == g_life->generation.load(std::memory_order_relaxed);
    MetaRecord record{};
    record.start = now_ns(process_clock());
    record.id = id;
    record.thread = current ? log->index() : kNoThread;
    return names.define(domain, kind, record, json);
  });
}

void forget(uint16_t domain, uint32_t kind, uint64_t id) {
  with_names<bool>([&](Names &names) {
    names.forget(domain, kind, id);
    return true;
  });
}

}  // namespace warplens::agent
