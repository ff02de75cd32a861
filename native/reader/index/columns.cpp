// Finds the names that fill each column of a picture.
#include "columns.h"

#include <algorithm>
#include <array>
#include <utility>

namespace warplens::reader::lod {

namespace {

struct Share {  // of a group in a column
  double time = 0, longest = -1;
  uint64_t begun = 0;
  int64_t start = 0;
  uint32_t row = 0, name = 0, track = 0;
};

// The sums of one column so far, by number of the group; only the groups that occurred are cleared again.
class Sums {
 public:
  explicit Sums(size_t groups) : place_(groups, kNone) {}

  void add(uint32_t group, double time, bool begun, int64_t start, uint32_t row, uint32_t name,
           uint32_t track) {
    if (place_[group] == kNone) {
      place_[group] = static_cast<uint32_t>(met_.size());
      met_.push_back(group);
      shares_.emplace_back();
    }
    Share &share = shares_[place_[group]];
    share.time += time;
    share.begun += begun ? 1 : 0;
    if (time > share.longest) {
      share.longest = time, share.start = start;
      share.row = row, share.name = name, share.track = track;
    }
    busy_ += time;
    ++number_;
  }

  void cover(double from, double to) { spans_.emplace_back(from, to); }

  void take(uint32_t column, std::vector<Cell> &cells) {
    if (met_.empty()) {
      return;
    }
    const auto most = std::max_element(shares_.begin(), shares_.end(),
                                       [](const Share &a, const Share &b) { return a.time < b.time; });
    const uint32_t group = met_[static_cast<size_t>(most - shares_.begin())];
    cells.push_back({busy_, covered(), most->time, number_, most->begun, most->start, column, group,
                     most->row, most->name, most->track});
    for (const uint32_t one : met_) {
      place_[one] = kNone;
    }
    met_.clear();
    shares_.clear();
    spans_.clear();
    busy_ = 0;
    number_ = 0;
  }

 private:
  double covered() {
    std::sort(spans_.begin(), spans_.end());
    double covered = 0, until = -1;
    for (const auto &[from, to] : spans_) {
      covered += std::max(to - std::max(from, until), 0.0);
      until = std::max(until, to);
    }
    return covered;
  }

  std::vector<uint32_t> place_, met_;
  std::vector<std::pair<double, double>> spans_;
  std::vector<Share> shares_;
  double busy_ = 0;
  uint64_t number_ = 0;
};

}  // namespace

std::vector<Cell> cells_of(const Index &index, std::span<const LaneOf> lanes, int64_t begin, int64_t end,
                           uint32_t columns, std::span<const uint32_t> groups) {
  std::vector<Cell> cells;
  begin = bound(begin), end = bound(end);
  if (columns == 0 || begin >= end) {
    return cells;
  }
  std::vector<LaneRecord> records;
  for (const LaneOf &wanted : lanes) {
    for (const LaneRecord &record : index.lanes(wanted.track)) {
      if (record.lane == wanted.lane) {
        records.push_back(record);
      }
    }
  }
  uint32_t most = 0;
  for (const uint32_t group : groups) {
    most = group != kNone ? std::max(most, group + 1) : most;
  }
  Sums sums(most);
  const int64_t length = end - begin;
  const double width = static_cast<double>(length) / columns;
  // The first nanosecond of a column: a time belongs to one column alone, whose edges may lie between two of them.
  const auto edge = [&](uint32_t column) {
    const auto product = static_cast<__int128>(length) * column;
    return begin + static_cast<int64_t>((product + columns - 1) / columns);
  };
  for (uint32_t column = 0; column < columns; ++column) {
    const int64_t from = edge(column), to = edge(column + 1);
    const double left = column * width, right = (column + 1) * width;
    for (const LaneRecord &record : records) {
      index.walk(
          index.view(record),
          [&](const Node &node) {
            const int64_t first = cut(node.begin), last = std::max(cut(node.end), first);
            return first >= to ? Go::kStop : last < from ? Go::kSkip : Go::kInto;
          },
          [&](const Leaf &leaf) {
            std::array<int64_t, kLeaf> start, duration;
            std::array<uint32_t, kLeaf> names;
            leaf.times(start.data(), duration.data());
            leaf.names(names.data());
            for (uint32_t i = 0; i < leaf.size(); ++i) {
              const int64_t first = std::max(start[i], begin);
              const int64_t last = std::max(std::min(start[i] + duration[i], end), first);
              // What ends before the time shown, or begins behind it, is not in it; an instant at its begin is.
              const bool inside = start[i] < end && (start[i] + duration[i] > begin || start[i] >= begin);
              if (!inside || first >= to || std::max(last - 1, first) < from || names[i] >= groups.size() ||
                  groups[names[i]] == kNone) {
                continue;
              }
              const double low = std::max(static_cast<double>(first - begin), left);
              const double high = std::min(static_cast<double>(last - begin), right);
              // What lies within one column counts as it is.
              const bool whole = first >= from && std::max(last - 1, first) < to;
              const double time = whole ? static_cast<double>(last - first) : high - low;
              sums.cover(low, high);
              sums.add(groups[names[i]], time, first >= from, start[i], leaf.row(i), names[i], record.track);
            }
            return true;
          });
    }
    sums.take(column, cells);
  }
  return cells;
}

}  // namespace warplens::reader::lod
