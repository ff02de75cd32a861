// Places ranges on lanes whose contents nest properly, for formats that draw from begin/end pairs.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

namespace warplens {

// One family of lanes: a thread's push/pop ranges, or a process's start/end ranges. Ranges come sorted by start, enclosing
// ones first. A range goes above its parent where that is the innermost open range of a lane, else on the first empty lane:
// so what a lane shows as nesting is nesting in the table.
class Lanes {
 public:
  // Returns the lane of the range. `close(lane, end)` is called for every range that ends before it on a lane it looked at.
  template <typename Close>
  int32_t place(int64_t id, int64_t parent, int64_t start, int64_t end, Close &&close) {
    if (parent >= 0) {
      if (const int32_t lane = above_parent(recent_, parent, start, end, close); lane >= 0)
        return put(lane, id, end);
      for (int32_t lane = 0; lane < count(); ++lane) {
        if (above_parent(lane, parent, start, end, close) >= 0) return put(lane, id, end);
      }
    }
    while (!busy_.empty() && busy_.top().first <= start) {
      const int32_t lane = busy_.top().second;
      busy_.pop();
      drain(lane, close);
      free_.push(lane);
    }
    if (free_.empty()) {
      free_.push(count());
      open_.emplace_back();
    }
    const int32_t lane = free_.top();
    free_.pop();
    busy_.push({end, lane});
    return put(lane, id, end);
  }

  // Ends all that is open.
  template <typename Close>
  void drain_all(Close &&close) {
    for (int32_t lane = 0; lane < count(); ++lane) drain(lane, close);
  }

  int32_t count() const { return static_cast<int32_t>(open_.size()); }

 private:
  struct Open {
    int64_t id, end;
  };
  using Entry = std::pair<int64_t, int32_t>;  // end of the lane's outermost range, lane

  template <typename Close>
  int32_t above_parent(int32_t lane, int64_t parent, int64_t start, int64_t end, Close &close) {
    if (lane >= count()) return -1;
    auto &open = open_[static_cast<size_t>(lane)];
    while (!open.empty() && open.back().end <= start && open.back().id != parent) {
      close(lane, open.back().end);
      open.pop_back();
    }
    return !open.empty() && open.back().id == parent && open.back().end >= end ? lane : -1;
  }
  template <typename Close>
  void drain(int32_t lane, Close &close) {
    auto &open = open_[static_cast<size_t>(lane)];
    for (; !open.empty(); open.pop_back()) close(lane, open.back().end);
  }
  int32_t put(int32_t lane, int64_t id, int64_t end) {
    open_[static_cast<size_t>(lane)].push_back({id, end});
    return recent_ = lane;
  }

  std::vector<std::vector<Open>> open_;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> busy_;
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> free_;
  int32_t recent_ = 0;
};

}  // namespace warplens
