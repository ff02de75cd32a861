// A perf event of one CPU, and the ring that the kernel writes it to.
//
// The protocol is perf's. The kernel writes records and then `data_head`; acquire pairs with that. The
// reader releases `data_tail` behind each record, and the kernel never writes beyond it. Both numbers
// only grow; their place in the ring is the number modulo its size.
#pragma once

#include <linux/perf_event.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace warplens::agent {

class PerfRing {
 public:
  PerfRing() = default;
  PerfRing(const PerfRing &) = delete;
  PerfRing &operator=(const PerfRing &) = delete;

  //! The event for the thread `tid` and those that it begins, while they are on `cpu`; 0 or an errno. The ring has `pages` pages (a
  //! power of two), or where the user may not have so much locked memory fewer, but at least `least`.
  int open(const perf_event_attr &attributes, int tid, int cpu, size_t pages, size_t least);
  void close();
  //! The same event for another thread, into the same ring; 0 or an errno. It stays open for good.
  int join(const perf_event_attr &attributes, int tid) const;
  //! Takes the event and the ring of `other`, which is then closed.
  void take_over(PerfRing &other);
  //! [FORK] In a child: the ring is not mapped here, the event is the parent's.
  void abandon();

  bool is_open() const { return page_ != nullptr; }
  int fd() const { return fd_; }
  int cpu() const { return cpu_; }
  void enable(bool on);

  //! Hands each record that there is to `each`, whole and in order. One thread at a time.
  template <typename Each>
  void drain(const Each &each) {
    if (page_ == nullptr) {
      return;
    }
    uint64_t tail = page_->data_tail;
    // What the kernel writes between our looks waits for the next one: a busy ring would never let us go.
    const uint64_t head = __atomic_load_n(&page_->data_head, __ATOMIC_ACQUIRE);
    while (tail != head) {
      const perf_event_header *record = next(tail, head);
      if (record == nullptr) {
        tail = head;  // not as the kernel writes
        break;
      }
      each(*record);
      tail += record->size;
      __atomic_store_n(&page_->data_tail, tail, __ATOMIC_RELEASE);
    }
    __atomic_store_n(&page_->data_tail, tail, __ATOMIC_RELEASE);
  }

 private:
  const perf_event_header *next(uint64_t tail, uint64_t head);

  int fd_ = -1;
  int cpu_ = -1;
  perf_event_mmap_page *page_ = nullptr;
  size_t size_ = 0;           // of the data
  std::vector<char> joined_;  // a record that lies across the end
};

// Reads the words of a record, as far as there are some.
class PerfFields {
 public:
  explicit PerfFields(const perf_event_header &record)
      : at_(reinterpret_cast<const char *>(&record + 1)),
        end_(reinterpret_cast<const char *>(&record) + record.size) {}

  template <typename T>
  T take() {
    T value{};
    if (left() >= sizeof(T)) {
      __builtin_memcpy(&value, at_, sizeof(T));
    }
    skip(sizeof(T));
    return value;
  }
  void skip(size_t size) { at_ += size < left() ? size : left(); }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  const char *at() const { return at_; }

 private:
  const char *at_;
  const char *end_;
};

}  // namespace warplens::agent
