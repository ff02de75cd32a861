// The functions `critical_…`: longest paths through points in time (warplens.analysis.critical_path.dag).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "critical.h"
#include "reader/door.h"

namespace warplens::reader {
namespace {

struct Critical {
  CriticalGraph graph;
  uint64_t edges;
  uint64_t points;
};

std::unique_ptr<Critical> critical_new(Array<const int64_t> from, Array<const int64_t> to, uint64_t points) {
  require_size(from.size, to);
  const auto is_outside = [points](int64_t point) {
    return point < 0 || static_cast<uint64_t>(point) >= points;
  };
  if (std::any_of(from.begin(), from.end(), is_outside) || std::any_of(to.begin(), to.end(), is_outside)) {
    throw std::invalid_argument("an edge begins or ends at no point");
  }
  return std::unique_ptr<Critical>(
      new Critical{CriticalGraph(from.data, to.data, from.size, points), from.size, points});
}
WARPLENS_FUNCTION(critical_new);

// How many points have a place in an order of the graph: all, unless it has a cycle.
uint64_t critical_sorted(Critical &critical) {
  return critical.graph.sorted();
}
WARPLENS_FUNCTION(critical_sorted);

// Returns how many edges are left out.
uint64_t critical_observe(Critical &critical, Array<const int64_t> weight, Array<const int64_t> observed,
                          Array<int64_t> time, Array<int64_t> delay, Array<int64_t> binding) {
  require_size(critical.edges, weight);
  require_size(critical.points, observed, time, delay, binding);
  return critical.graph.observe(weight.data, observed.data, time.data, delay.data, binding.data);
}
WARPLENS_FUNCTION(critical_observe);

void critical_times(Critical &critical, Array<const int64_t> weight, Array<const int64_t> delay,
                    Array<const int64_t> first, Array<int64_t> time) {
  require_size(critical.edges, weight);
  require_size(critical.points, delay, first, time);
  critical.graph.times(weight.data, delay.data, first.data, time.data);
}
WARPLENS_FUNCTION(critical_times);

void critical_latest(Critical &critical, Array<const int64_t> weight, Array<const int64_t> delay,
                     int64_t last, Array<int64_t> late) {
  require_size(critical.edges, weight);
  require_size(critical.points, delay, late);
  critical.graph.latest(weight.data, delay.data, last, late.data);
}
WARPLENS_FUNCTION(critical_latest);

}  // namespace
}  // namespace warplens::reader
