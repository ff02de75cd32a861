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
  thread_log();  // as for a domain of NVTX
  const uint16_t number = name != nullptr ? domain_number(name) : 0;
  if (number == 0) {
    return nullptr;
  }
  IttDomain *first = g_domains.load(std::memory_order_acquire);
  for (IttDomain *known = first; known != nullptr; known = known->next) {
    if (known->number == number) {
      return known;
    }
  }
  if (is_watchful()) {
    meet_domain(number, name);
  }
  // Without a lock, which a fork could leave taken: two threads at once may each make one with the same number.
  auto *made = new (std::nothrow) IttDomain{1, strdup(name), nullptr, number, nullptr, first};
  while (made != nullptr && !g_domains.compare_exchange_weak(made->next, made, std::memory_order_release)) {
  }
  return made;
}

IttString *create_string(const char *text) {
  return reinterpret_cast<IttString *>(text != nullptr ? uintptr_t{text_number(text)} : 0);
}

ThreadLog *log_for(uint16_t domain) {
  return is_watchful() && is_left_out(domain) ? nullptr : thread_log();
}

void begin_task(const IttDomain *domain, IttId, IttId, IttString *name) {
  const auto number = static_cast<uint16_t>(domain->number);
  ThreadLog *log = log_for(number);
  if (log == nullptr) {
    return;
  }
  Label label;
  label.name = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(name));
  if (is_watchful()) {
    push_range<true>(*log, number, label);
  } else {
    push_range<false>(*log, number, label);
  }
}

void end_task(const IttDomain *domain) {
  const auto number = static_cast<uint16_t>(domain->number);
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
