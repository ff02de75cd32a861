// Looks slices up by name, time and row, and sums them over a time.
#include "find.h"

#include <algorithm>
#include <array>
#include <queue>

namespace warplens::reader::lod {

namespace {

bool overlaps(int64_t start, int64_t end, int64_t from, int64_t to) {
  return start < to && (end > from || start >= from);
}

Go meet(const Node &node, int64_t begin, int64_t end) {
  const int64_t from = cut(node.begin);
  return from >= end                                                 ? Go::kStop
         : overlaps(from, std::max(cut(node.end), from), begin, end) ? Go::kInto
                                                                     : Go::kSkip;
}

// The slices of a lane that overlap a time, in order.
template <typename OfSlice>
void each(const Index &index, const LaneRecord &lane, int64_t begin, int64_t end, const OfSlice &of_slice) {
  index.walk(
      index.view(lane), [&](const Node &node) { return meet(node, begin, end); },
      [&](const Leaf &leaf) {
        std::array<int64_t, kLeaf> start, duration;
        leaf.times(start.data(), duration.data());
        for (uint32_t i = 0; i < leaf.size(); ++i) {
          if (overlaps(start[i], start[i] + duration[i], begin, end)) {
            of_slice(leaf, i, start[i], duration[i]);
          }
        }
        return true;
      });
}

template <bool kBackward>
class Search {
 public:
  Search(const Index &index, std::span<const uint32_t> names, int64_t begin, int64_t end, uint64_t limit)
      : index_(index), begin_(begin), end_(end), limit_(limit), wanted_(index.names().size()) {
    int64_t first = INT64_MAX, last = INT64_MIN;
    for (const uint32_t name : names) {
      if (name < wanted_.size()) {
        wanted_[name] = 1;
        bits_ |= uint64_t{1} << (name % 64);
        first = std::min(first, index.names()[name].first);
        last = std::max(last, index.names()[name].last);
      }
    }
    begin_ = std::max(begin_, first);
    end_ = std::min(end_, plus(cut(last), 1));
  }

  void look(const LaneRecord &lane) {
    index_.walk<kBackward>(
        index_.view(lane),
        [&](const Node &node) {
          const int64_t from = cut(node.begin);
          const int64_t to = std::max(cut(node.end), from);
          if (kBackward ? to < begin_ : from >= end_) {
            return Go::kStop;
          }
          return from >= end_ || to < begin_ || (node.names & bits_) == 0 ? Go::kSkip : Go::kInto;
        },
        [&](const Leaf &leaf) {
          std::array<uint32_t, kLeaf> names;
          leaf.names(names.data());
          for (uint32_t step = 0; step < leaf.size(); ++step) {
            const uint32_t i = kBackward ? leaf.size() - 1 - step : step;
            if (names[i] < wanted_.size() && wanted_[names[i]] != 0) {
              const int64_t start = leaf.start(i);
              if (start >= begin_ && start < end_) {
                take({lane.track, lane.lane, leaf.slice(i)});
              }
            }
          }
          return true;
        });
  }

  std::vector<Hit> hits() {
    std::vector<Hit> found;
    for (; !best_.empty(); best_.pop()) {
      found.push_back(best_.top());
    }
    std::reverse(found.begin(), found.end());
    return found;
  }

 private:
  struct Worse {  // the top of the queue is what goes first
    bool operator()(const Hit &a, const Hit &b) const {
      if (a.slice.start != b.slice.start) {
        return kBackward ? a.slice.start > b.slice.start : a.slice.start < b.slice.start;
      }
      return kBackward ? std::pair(a.track, a.lane) > std::pair(b.track, b.lane)
                       : std::pair(a.track, a.lane) < std::pair(b.track, b.lane);
    }
  };

  void take(const Hit &hit) {
    best_.push(hit);
    if (best_.size() > limit_) {
      best_.pop();
    }
    if (best_.size() == limit_) {  // what lies beyond the worst of them is of no use any more
      const int64_t worst = best_.top().slice.start;
      if (kBackward) {
        begin_ = std::max(begin_, worst);
      } else {
        end_ = std::min(end_, worst + 1);
      }
    }
  }

  const Index &index_;
  int64_t begin_, end_;
  uint64_t limit_;
  std::vector<uint8_t> wanted_;
  uint64_t bits_ = 0;
  std::priority_queue<Hit, std::vector<Hit>, Worse> best_;
};

template <bool kBackward>
std::vector<Hit> search(const Index &index, std::span<const uint32_t> names, int64_t begin, int64_t end,
                        std::span<const uint32_t> tracks, uint64_t limit) {
  Search<kBackward> search(index, names, begin, end, limit);
  for (const uint32_t track : tracks) {
    for (const LaneRecord &lane : index.lanes(track)) {
      search.look(lane);
    }
  }
  return search.hits();
}

}  // namespace

std::vector<Hit> find(const Index &index, std::span<const uint32_t> names, int64_t begin, int64_t end,
                      std::span<const uint32_t> tracks, uint64_t limit, bool backward) {
  if (limit == 0 || names.empty()) {
    return {};
  }
  begin = bound(begin), end = bound(end);
  return backward ? search<true>(index, names, begin, end, tracks, limit)
                  : search<false>(index, names, begin, end, tracks, limit);
}

std::optional<Hit> at(const Index &index, uint32_t track, uint32_t lane, int64_t time) {
  std::optional<Hit> found;
  time = cut(time);
  for (const LaneRecord &record : index.lanes(track)) {
    if (record.lane != lane) {
      continue;
    }
    index.walk<true>(
        index.view(record),
        [&](const Node &node) {
          return cut(node.begin) > time ? Go::kSkip : cut(node.end) < time ? Go::kStop : Go::kInto;
        },
        [&](const Leaf &leaf) {
          for (uint32_t i = leaf.size(); i-- > 0;) {
            if (leaf.start(i) <= time) {
              if (leaf.start(i) + leaf.duration(i) >= time) {
                found = {record.track, record.lane, leaf.slice(i)};
              }
              return false;
            }
          }
          return true;
        });
  }
  return found;
}

std::optional<Hit> locate(const Index &index, std::span<const uint32_t> tracks, uint32_t row,
                          std::optional<int64_t> start) {
  std::optional<Hit> found;
  for (const uint32_t track : tracks) {
    const bool ascending = track < index.tracks().size() && (index.tracks()[track].flags & kRowsAscend) != 0;
    for (const LaneRecord &record : index.lanes(track)) {
      index.walk<true>(
          index.view(record),
          [&](const Node &node) {
            // From behind: the first node whose rows begin by then has the row, where rows ascend.
            if (node.row_base > row || (start && (cut(node.begin) > *start || cut(node.end) < *start))) {
              return Go::kSkip;
            }
            return Go::kInto;
          },
          [&](const Leaf &leaf) {
            for (uint32_t i = leaf.size(); i-- > 0;) {
              if (leaf.row(i) == row && (!start || leaf.start(i) == *start)) {
                found = {record.track, record.lane, leaf.slice(i)};
                return false;
              }
            }
            return !ascending;
          });
      if (found) {
        return found;
      }
    }
  }
  return found;
}

Load load_of(const Index &index, uint32_t track, int64_t begin, int64_t end) {
  Load load{0, 0};
  begin = bound(begin), end = bound(end);
  const auto lanes = index.lanes(track);
  if (lanes.empty() || begin >= end) {
    return load;
  }
  const bool nested = (index.tracks()[track].flags & kNested) != 0;
  for (const LaneRecord &record : lanes) {
    const bool counts = record.lane == 0 || !nested;
    index.walk(
        index.view(record),
        [&](const Node &node) {
          const int64_t from = cut(node.begin), to = std::max(cut(node.end), from);
          if (from >= end) {
            return Go::kStop;
          }
          if (!overlaps(from, to, begin, end)) {
            return Go::kSkip;
          }
          if (from < begin || to > end || (counts && !nested)) {
            return Go::kInto;
          }
          load.events += node.slices;
          load.busy = counts ? plus(load.busy, std::max<int64_t>(node.busy, 0)) : load.busy;
          return Go::kSkip;
        },
        [&](const Leaf &leaf) {
          std::array<int64_t, kLeaf> start, duration;
          leaf.times(start.data(), duration.data());
          for (uint32_t i = 0; i < leaf.size(); ++i) {
            const int64_t to = start[i] + duration[i];
            if (overlaps(start[i], to, begin, end)) {
              ++load.events;
              if (counts && nested) {
                load.busy = plus(load.busy, std::min(to, end) - std::max(start[i], begin));
              }
            }
          }
          return true;
        });
  }
  if (!nested) {
    std::vector<std::pair<int64_t, int64_t>> spans;
    for (const LaneRecord &record : lanes) {
      each(index, record, begin, end, [&](const Leaf &, uint32_t, int64_t start, int64_t duration) {
        spans.emplace_back(std::max(start, begin), std::min(start + duration, end));
      });
    }
    std::sort(spans.begin(), spans.end());
    int64_t covered = begin;
    for (const auto &[from, to] : spans) {
      load.busy += std::max<int64_t>(to - std::max(from, covered), 0);
      covered = std::max(covered, to);
    }
  }
  return load;
}

void sum_up(const Index &index, std::span<const uint32_t> tracks, int64_t begin, int64_t end,
            std::span<Sum> sums) {
  begin = bound(begin), end = bound(end);
  for (const uint32_t track : tracks) {
    for (const LaneRecord &record : index.lanes(track)) {
      index.walk(
          index.view(record), [&](const Node &node) { return meet(node, begin, end); },
          [&](const Leaf &leaf) {
            std::array<int64_t, kLeaf> start, duration;
            std::array<uint32_t, kLeaf> names;
            leaf.times(start.data(), duration.data());
            leaf.names(names.data());
            for (uint32_t i = 0; i < leaf.size(); ++i) {
              const int64_t to = start[i] + duration[i];
              if (names[i] < sums.size() && overlaps(start[i], to, begin, end)) {
                Sum &sum = sums[names[i]];
                const int64_t inside = std::min(to, end) - std::max(start[i], begin);
                sum.total = plus(sum.total, inside);
                sum.longest = std::max(sum.longest, inside);
                ++sum.count;
              }
            }
            return true;
          });
    }
  }
}

}  // namespace warplens::reader::lod
