// Maps a domain and a number to a registered object.
// Lookups take no lock, so they work in signal handlers and fork children too.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace warplens::agent {

// NVTX's number ranges, the same for schemas, scopes, counters and time domains: predefined ones below the first, the
// program's own from there, and from the second those that the tool gives out.
inline constexpr uint64_t kStaticIds = uint64_t{1} << 24;
inline constexpr uint64_t kDynamicIds = uint64_t{1} << 32;

//! [MT] A number that no other object in this process has.
uint64_t new_id();

// Nothing is ever removed: a caller may keep a value that it looked up.
template <typename Value>
class Registry {
 public:
  const Value *find(uint16_t domain, uint64_t id) const {
    const Node *node = buckets_[bucket(domain, id)].load(std::memory_order_acquire);
    while (node != nullptr && (node->id != id || node->domain != domain)) {
      node = node->next;
    }
    return node == nullptr ? nullptr : &node->value;
  }

  //! The value now; an earlier one of the same number is hidden. Null when memory is out.
  Value *insert(uint16_t domain, uint64_t id, Value &&value) {
    auto *node = new (std::nothrow) Node{id, domain, nullptr, std::move(value)};
    if (node == nullptr) {
      return nullptr;
    }
    std::atomic<Node *> &head = buckets_[bucket(domain, id)];
    node->next = head.load(std::memory_order_relaxed);
    while (!head.compare_exchange_weak(node->next, node, std::memory_order_release)) {
    }
    return &node->value;
  }

 private:
  struct Node {
    uint64_t id;
    uint16_t domain;
    Node *next;
    Value value;
  };
  static constexpr size_t kBuckets = 1024;
  static size_t bucket(uint16_t domain, uint64_t id) {
    return ((id ^ uint64_t{domain} << 40) * 0x9e3779b97f4a7c15u) >> 54;
  }

  std::atomic<Node *> buckets_[kBuckets] = {};
};

}  // namespace warplens::agent
