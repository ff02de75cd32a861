// Tasks of Intel's interface ITT (oneDNN, PyTorch's emit_itt, OpenVINO, oneTBB): push/pop ranges of NVTX's domain of the same name.
#include "drivers/itt.h"

#include <atomic>
#include <cstring>
#include <new>

#include "agent/session.h"
#include "agent/watch.h"
#include "nvtx.h"

namespace warplens::agent {
namespace {

std::atomic<IttDomain *> g_domains{nullptr};  // they stay as long as the process

IttDomain *create_domain(const char *name) {
  IttDomain *first = g_domains.load(std::memory_order_acquire);
  for (IttDomain *known = first; name != nullptr && known != nullptr; known = known->next) {
    if (std::strcmp(known->name, name) == 0) {
      return known;
    }
  }
  char *copy = name != nullptr ? strdup(name) : nullptr;
  if (copy == nullptr) {
    return nullptr;
  }
  // Without a lock, which a fork could leave taken: two threads at once may each make one of the same name.
  auto *made = new (std::nothrow) IttDomain{1, copy, nullptr, 0, nullptr, first};
  while (made != nullptr && !g_domains.compare_exchange_weak(made->next, made, std::memory_order_release)) {
  }
  return made;
}

// Ours are odd numbers, which no address is.
IttString *create_string(const char *text) {
  const uint32_t number = text != nullptr ? text_number(text) : 0;
  return number != 0 ? reinterpret_cast<IttString *>(uintptr_t{number} << 1 | 1) : nullptr;
}

// The number of a domain, or of a string that the static part made before we came: given when it is first used.
template <typename Object, typename Number>
auto number_of(Object *object, const Number &give) {
  std::atomic_ref<int> number(object->number);
  int known = number.load(std::memory_order_relaxed);
  if (known == 0) [[unlikely]] {
    known = static_cast<int>(give());
    number.store(known, std::memory_order_relaxed);
  }
  return known;
}

uint16_t number_of(const IttDomain *domain) {
  return static_cast<uint16_t>(number_of(const_cast<IttDomain *>(domain), [domain] {
    const uint16_t number = domain->name != nullptr ? domain_number(domain->name) : 0;
    if (is_watchful() && number != 0) {
      meet_domain(number, domain->name);
    }
    return number;
  }));
}

uint32_t number_of(IttString *string) {
  const auto address = reinterpret_cast<uintptr_t>(string);
  if (string == nullptr || address % 2 == 1) {
    return static_cast<uint32_t>(address >> 1);
  }
  return static_cast<uint32_t>(
      number_of(string, [string] { return string->text != nullptr ? text_number(string->text) : 0; }));
}

ThreadLog *log_for(uint16_t domain) {
  return is_watchful() && is_left_out(domain) ? nullptr : thread_log();
}

void begin_task(const IttDomain *domain, IttId, IttId, IttString *name) {
  const uint16_t number = number_of(domain);
  ThreadLog *log = log_for(number);
  if (log == nullptr) {
    return;
  }
  Label label;
  label.name = number_of(name);
  if (is_watchful()) {
    push_range<true>(*log, number, label);
  } else {
    push_range<false>(*log, number, label);
  }
}

void end_task(const IttDomain *domain) {
  const uint16_t number = number_of(domain);
  ThreadLog *log = log_for(number);
  if (log == nullptr) {
    return;
  }
  const uint64_t now = now_ns(log->clock());
  if (is_watchful()) {
    pop_range<true>(*log, number, now);
  } else {
    pop_range<false>(*log, number, now);
  }
}

struct Ours {
  const char *name;
  void *function;
};
const Ours kOurs[] = {
    {"__itt_domain_create", reinterpret_cast<void *>(create_domain)},
    {"__itt_string_handle_create", reinterpret_cast<void *>(create_string)},
    {"__itt_task_begin", reinterpret_cast<void *>(begin_task)},
    {"__itt_task_end", reinterpret_cast<void *>(end_task)},
};

}  // namespace

void install_itt(IttState &state) {
  if (!prepare()) {
    return;
  }
  for (IttFunction *entry = state.functions; entry != nullptr && entry->name != nullptr; ++entry) {
    for (const Ours &ours : kOurs) {
      if (entry->function != nullptr && std::strcmp(entry->name, ours.name) == 0) {
        *entry->function = ours.function;
      }
    }
  }
}

}  // namespace warplens::agent
