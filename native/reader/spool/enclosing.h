// Finds the innermost push/pop range around each of many points in time, while the ranges go by in order of start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace warplens::reader {

class Enclosing {
 public:
  // Only ranges of threads that are named are looked at.
  void watch(int64_t thread) { threads_.try_emplace(thread); }

  // Takes the next ranges (those with style 0) and the points that lie before all later ranges, both in order of start. A range
  // encloses a point at its start, none at its end. out: the range's id, -1 without one.
  struct Ranges {
    const int64_t *thread;
    const int64_t *start;
    const int64_t *end;
    const int64_t *id;
    const int32_t *style;
    size_t count;
  };
  void add(const Ranges &ranges, const int64_t *thread, const int64_t *time, size_t count, int64_t *out);

 private:
  struct Open {
    int64_t end;
    int64_t id;
  };
  using Stack = std::vector<Open>;

  static void close(Stack &stack, int64_t time) {
    while (!stack.empty() && stack.back().end <= time) {
      stack.pop_back();
    }
  }
  void push(const Ranges &ranges, size_t row);

  std::unordered_map<int64_t, Stack> threads_;
};

}  // namespace warplens::reader
