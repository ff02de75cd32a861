// Solves a graph of points in time.
// For each: when it is reached, the point that it waited for, and how long it could be delayed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace warplens::reader {

// An edge says that `to` comes at least `weight` after `from`. Where the time of a point was observed, what it came later than its edges
// ask for is its delay; it keeps that when weights are changed.
class CriticalGraph {
 public:
  static constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();

  CriticalGraph(const int64_t *from, const int64_t *to, size_t edges, size_t points);

  // How many points are in no circle and behind none; less than there are: the graph has one.
  size_t sorted() const { return order_.size(); }

  // Times of all points from those that were observed (kUnknown: the latest that an edge asks for). An edge that asks for more than was
  // observed is dead from here on. binding: the edge that decides, -1 without one. Returns how many edges are dead.
  size_t observe(const int64_t *weight, const int64_t *observed, int64_t *time, int64_t *delay,
                 int64_t *binding);

  // Times with other weights; points without edges to them keep the time they have in `first`.
  void times(const int64_t *weight, const int64_t *delay, const int64_t *first, int64_t *time) const;

  // The latest time of each point at which `last` is not put off.
  void latest(const int64_t *weight, const int64_t *delay, int64_t last, int64_t *late) const;

 private:
  size_t points_;
  std::vector<int64_t> from_, to_;
  std::vector<uint8_t> dead_;
  std::vector<size_t> begin_;  // of each point's incoming edges in edges_
  std::vector<int64_t> edges_;
  std::vector<int64_t> order_;
};

}  // namespace warplens::reader
