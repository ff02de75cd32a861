// Translates handles between the program, a second NVTX tool and the agent.
// With a second tool the program holds that tool's handles. Each argument of a call becomes two:
// ours, and theirs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <type_traits>
#include <utility>

#include "event.h"
#include "registry.h"

namespace warplens::agent::chained {

using Domain = nvtxDomainHandle_t;

// What the program holds is theirs; by that, ours. Kept for good, as tools do.
inline Registry<uint64_t> g_domains;
inline Registry<uint64_t> g_strings;    // of a domain of ours
inline Registry<uint64_t> g_resources;  // and sync objects

inline void keep(Registry<uint64_t> &registry, uint16_t domain, uint64_t theirs, uint64_t ours) {
  const uint64_t *known = registry.find(domain, theirs);
  if (known == nullptr || *known != ours) {
    registry.insert(domain, theirs, std::move(ours));
  }
}

template <typename Pointer>
uint64_t number(Pointer *handle) {
  return reinterpret_cast<uintptr_t>(handle);
}

// Open start/end ranges. No locks, because signal handlers and fork children come here: an entry is taken by its key, and
// may be anywhere in a window behind the key's place.
// The protocol. put() takes an entry by an exchange of `ours` from 0, writes the rest, and releases
// `theirs`, which makes the entry visible. take() reads the rest, then wins the exchange of `theirs`
// to 0, so a range ends once; only then `ours` becomes 0 and the entry free.
class Ranges {
 public:
  bool put(uint64_t theirs, uint64_t ours, bool they_know) {
    for (uint32_t i = 0; i < kWindow; ++i) {
      Entry &entry = entry_at(theirs, i);
      uint64_t none = 0;
      if (entry.ours.load(std::memory_order_relaxed) == 0 &&
          entry.ours.compare_exchange_strong(none, ours, std::memory_order_relaxed)) {
        entry.they_know.store(they_know, std::memory_order_relaxed);
        entry.theirs.store(theirs, std::memory_order_release);
        return true;
      }
    }
    return false;
  }

  //! Ours, and whether the other tool is to hear of the end; 0 when the range is not known.
  uint64_t take(uint64_t theirs, bool &they_know) {
    for (uint32_t i = 0; theirs != 0 && i < kWindow; ++i) {
      Entry &entry = entry_at(theirs, i);
      if (entry.theirs.load(std::memory_order_acquire) != theirs) {
        continue;
      }
      uint64_t ours = entry.ours.load(std::memory_order_relaxed);
      bool know = entry.they_know.load(std::memory_order_relaxed);
      uint64_t expected = theirs;
      if (entry.theirs.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) {
        entry.ours.store(0, std::memory_order_release);
        they_know = know;
        return ours;
      }
    }
    return 0;
  }

  //! Ours, which stays open; 0 when the range is not known.
  uint64_t find(uint64_t theirs) {
    for (uint32_t i = 0; theirs != 0 && i < kWindow; ++i) {
      Entry &entry = entry_at(theirs, i);
      if (entry.theirs.load(std::memory_order_acquire) == theirs) {
        return entry.ours.load(std::memory_order_relaxed);
      }
    }
    return 0;
  }

 private:
  struct Entry {
    std::atomic<uint64_t> theirs;
    std::atomic<uint64_t> ours;  // 0: the entry is free
    std::atomic<bool> they_know;
  };
  static constexpr uint32_t kEntries = 1u << 18;
  static constexpr uint32_t kWindow = 256;

  Entry &entry_at(uint64_t key, uint32_t i) {
    return entries_[((key * 0x9e3779b97f4a7c15u >> 40) + i) % kEntries];
  }

  Entry entries_[kEntries] = {};  // never touched, it costs no memory
};
inline Ranges g_ranges;

inline uint16_t our_domain(Domain handle) {
  const uint64_t *known = handle == nullptr ? nullptr : g_domains.find(0, number(handle));
  return known == nullptr ? domain_of(handle) : static_cast<uint16_t>(*known);
}

// An argument as we get it, and as they do. What they did not give out, they must not see.
template <typename Value>
struct Argument {
  Argument(Value given, uint16_t) : ours(given), theirs(given) {}
  Value ours;
  Value theirs;
};

template <>
struct Argument<Domain> {
  Argument(Domain given, uint16_t) : ours(given), theirs(given) {
    if (given != nullptr) {
      const uint64_t *known = g_domains.find(0, number(given));
      ours = to_handle<Domain>(known == nullptr ? domain_of(given) : *known);
      theirs = known == nullptr ? nullptr : given;
    }
  }
  Domain ours;
  Domain theirs;
};

template <typename Handle>
struct ObjectArgument {
  ObjectArgument(Handle given, uint16_t) : ours(given), theirs(given) {
    const uint64_t *known = given == nullptr ? nullptr : g_resources.find(0, number(given));
    if (known != nullptr) {
      ours = to_handle<Handle>(*known);
    } else {
      theirs = nullptr;
    }
  }
  Handle ours;
  Handle theirs;
};
template <>
struct Argument<nvtxResourceHandle_t> : ObjectArgument<nvtxResourceHandle_t> {
  using ObjectArgument::ObjectArgument;
};
template <>
struct Argument<nvtxSyncUser_t> : ObjectArgument<nvtxSyncUser_t> {
  using ObjectArgument::ObjectArgument;
};

// A structure with a message, which may be a registered string.
template <typename Given>
struct MessageArgument {
  using Attributes = std::remove_const_t<std::remove_pointer_t<Given>>;

  MessageArgument(Given given, uint16_t domain) : ours(given), theirs(given) {
    if (given == nullptr || given->size < offsetof(Attributes, message) + sizeof(given->message) ||
        given->messageType != NVTX_MESSAGE_TYPE_REGISTERED) {
      return;
    }
    const uint64_t *known = g_strings.find(domain, number(given->message.registered));
    std::memcpy(static_cast<void *>(&copy), given, std::min<size_t>(given->size, sizeof(copy)));
    copy.size = static_cast<uint16_t>(std::min<size_t>(given->size, sizeof(copy)));
    if (known != nullptr) {
      copy.message.registered = to_handle<nvtxStringHandle_t>(*known);
      ours = &copy;
    } else {
      copy.message.registered = nullptr;
      theirs = &copy;
    }
  }
  MessageArgument(const MessageArgument &) = delete;
  MessageArgument &operator=(const MessageArgument &) = delete;

  Given ours;
  Given theirs;
  Attributes copy{};
};
template <>
struct Argument<const nvtxEventAttributes_t *> : MessageArgument<const nvtxEventAttributes_t *> {
  using MessageArgument::MessageArgument;
};
template <>
struct Argument<nvtxResourceAttributes_t *> : MessageArgument<nvtxResourceAttributes_t *> {
  using MessageArgument::MessageArgument;
};
template <>
struct Argument<const nvtxSyncUserAttributes_t *> : MessageArgument<const nvtxSyncUserAttributes_t *> {
  using MessageArgument::MessageArgument;
};

}  // namespace warplens::agent::chained
