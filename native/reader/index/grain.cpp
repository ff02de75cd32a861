// Chooses the least width of rectangles in a view.
#include "grain.h"

namespace warplens::reader::lod {

namespace {

constexpr uint64_t kEach = 2;   // begins looked at for each rectangle of a lane, if the lane has that many
constexpr double kStep = 1.02;  // the grain grows by so much at least
constexpr double kRoom = 0.95;  // of the limit, for what was estimated

// When nodes of a lane begin that have slices in the view: those of the highest level with `enough` of them, or the leaves.
void sample(const LaneView &lane, int64_t begin, int64_t end, uint64_t enough, std::vector<int64_t> &out) {
  uint64_t first = 0, behind = 1;
  for (uint32_t level = lane.levels; level-- > 0;) {
    const Node *nodes = lane.nodes + lane.offset[level];
    behind = std::min(behind, lane.count[level]);
    while (first < behind && nodes[first].begin < begin) {
      ++first;  // part of it is not in the view; what is, nobody knows
    }
    while (first < behind && nodes[behind - 1].begin >= end) {
      --behind;
    }
    if (level == 0 || behind - first >= enough) {
      for (; first < behind; ++first) {
        out.push_back(cut(nodes[first].begin));  // a broken file may say anything
      }
      return;
    }
    first = (first == 0 ? 0 : first - 1) * kFan;  // the one before may reach into the view
    behind *= kFan;
  }
}

// Two slices that begin further apart than the grain are never in one rectangle: their number has this lower bound. `likely`: a rectangle
// ends within a node, where the next one begins; half a node earlier is the best guess.
uint64_t count_of(std::span<const int64_t> begins, std::span<const size_t> lanes, int64_t grain,
                  bool likely) {
  uint64_t count = 0;
  size_t at = 0;
  for (const size_t behind : lanes) {
    if (at == behind) {
      continue;
    }
    ++count;
    int64_t last = begins[at];
    const int64_t half = likely ? (begins[behind - 1] - last) / static_cast<int64_t>(2 * (behind - at)) : 0;
    for (++at; at < behind; ++at) {
      const bool apart = begins[at] - last > grain - half;
      last = apart ? begins[at] : last;
      count += apart ? 1 : 0;
    }
  }
  return count;
}

}  // namespace

int64_t starting_grain(const Index &index, std::span<const LaneRecord *const> lanes, int64_t begin,
                       int64_t end, int64_t grain, uint64_t limit) {
  std::vector<int64_t> begins;
  std::vector<size_t> behind;  // of each lane, in `begins`
  behind.reserve(lanes.size());
  for (const LaneRecord *lane : lanes) {
    sample(index.view(*lane), begin, end, kEach * (limit / lanes.size() + 1), begins);
    behind.push_back(begins.size());
  }
  if (count_of(begins, behind, grain, false) <= limit) {
    return grain;
  }
  const double room = kRoom * static_cast<double>(limit);
  while (grain < end - begin) {
    const auto count = static_cast<double>(count_of(begins, behind, grain, true));
    if (count <= room) {
      break;
    }
    const double wanted = static_cast<double>(std::max<int64_t>(grain, 1)) * std::max(kStep, count / room);
    grain = static_cast<int64_t>(
        std::clamp(wanted, static_cast<double>(grain + 1), static_cast<double>(end - begin)));
  }
  return grain;
}

}  // namespace warplens::reader::lod
