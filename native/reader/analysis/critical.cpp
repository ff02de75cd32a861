// Solves a graph of points in time: earliest times, deciding edges, slack.
#include "critical.h"

#include <algorithm>

namespace warplens::reader {

namespace {

// Edges by one of their ends: where each point's begin, and which they are.
void group(const std::vector<int64_t> &ends, size_t points, std::vector<size_t> &begin,
           std::vector<int64_t> &edges) {
  begin.assign(points + 1, 0);
  for (const int64_t end : ends) {
    ++begin[static_cast<size_t>(end) + 1];
  }
  for (size_t point = 0; point < points; ++point) {
    begin[point + 1] += begin[point];
  }
  std::vector<size_t> next(begin.begin(), begin.end() - 1);
  edges.resize(ends.size());
  for (size_t edge = 0; edge < ends.size(); ++edge) {
    edges[next[static_cast<size_t>(ends[edge])]++] = static_cast<int64_t>(edge);
  }
}

}  // namespace

CriticalGraph::CriticalGraph(const int64_t *from, const int64_t *to, size_t edges, size_t points)
    : points_(points), from_(from, from + edges), to_(to, to + edges), dead_(edges, 0) {
  group(to_, points, begin_, edges_);
  std::vector<size_t> begin;
  std::vector<int64_t> out;
  group(from_, points, begin, out);
  std::vector<uint32_t> missing(points, 0);
  for (const int64_t end : to_) {
    ++missing[static_cast<size_t>(end)];
  }
  order_.reserve(points);
  for (size_t point = 0; point < points; ++point) {
    if (missing[point] == 0) {
      order_.push_back(static_cast<int64_t>(point));
    }
  }
  for (size_t done = 0; done < order_.size(); ++done) {
    const auto point = static_cast<size_t>(order_[done]);
    for (size_t place = begin[point]; place < begin[point + 1]; ++place) {
      const int64_t next = to_[static_cast<size_t>(out[place])];
      if (--missing[static_cast<size_t>(next)] == 0) {
        order_.push_back(next);
      }
    }
  }
}

size_t CriticalGraph::observe(const int64_t *weight, const int64_t *observed, int64_t *time, int64_t *delay,
                              int64_t *binding) {
  size_t dead = 0;
  std::fill(dead_.begin(), dead_.end(), 0);
  for (const int64_t point : order_) {
    const auto here = static_cast<size_t>(point);
    int64_t latest = kUnknown;
    binding[here] = -1;
    for (size_t place = begin_[here]; place < begin_[here + 1]; ++place) {
      const auto edge = static_cast<size_t>(edges_[place]);
      const int64_t asked = time[static_cast<size_t>(from_[edge])] + weight[edge];
      if (observed[here] != kUnknown && asked > observed[here]) {
        dead_[edge] = 1;
        ++dead;
      } else if (asked > latest) {
        latest = asked;
        binding[here] = edges_[place];
      }
    }
    time[here] = observed[here] != kUnknown ? observed[here] : latest != kUnknown ? latest : 0;
    delay[here] = latest == kUnknown ? 0 : time[here] - latest;
  }
  return dead;
}

void CriticalGraph::times(const int64_t *weight, const int64_t *delay, const int64_t *first,
                          int64_t *time) const {
  for (const int64_t point : order_) {
    const auto here = static_cast<size_t>(point);
    int64_t latest = kUnknown;
    for (size_t place = begin_[here]; place < begin_[here + 1]; ++place) {
      const auto edge = static_cast<size_t>(edges_[place]);
      if (dead_[edge] == 0) {
        latest = std::max(latest, time[static_cast<size_t>(from_[edge])] + weight[edge]);
      }
    }
    time[here] = latest == kUnknown ? first[here] : latest + delay[here];
  }
}

void CriticalGraph::latest(const int64_t *weight, const int64_t *delay, int64_t last, int64_t *late) const {
  std::fill(late, late + points_, last);
  for (auto point = order_.rbegin(); point != order_.rend(); ++point) {
    const auto here = static_cast<size_t>(*point);
    for (size_t place = begin_[here]; place < begin_[here + 1]; ++place) {
      const auto edge = static_cast<size_t>(edges_[place]);
      if (dead_[edge] == 0) {
        const auto before = static_cast<size_t>(from_[edge]);
        late[before] = std::min(late[before], late[here] - delay[here] - weight[edge]);
      }
    }
  }
}

}  // namespace warplens::reader
