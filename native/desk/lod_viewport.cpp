#include "lod_viewport.h"

#include <cmath>

namespace warpline::desk::lod {

void Rects::clear() {
  runs.clear();
  start.clear();
  duration.clear();
  name.clear();
  row.clear();
  slices.clear();
  busy.clear();
  link.clear();
}

namespace {

// What becomes one rectangle: a slice, or what is below a node.
struct Piece {
  int64_t begin, end, busy, longest;
  uint32_t name, row, link, slices;
};

class Drawing {
 public:
  Drawing(const Index &index, int64_t begin, int64_t end, int64_t grain, uint64_t limit, Rects &out)
      : index_(index), begin_(begin), end_(end), grain_(grain), limit_(limit), out_(out) {}

  // False: there are more rectangles than the limit allows.
  bool draw(const LaneRecord &record) {
    const auto first = static_cast<uint32_t>(out_.start.size());
    const bool whole = index_.walk(
        index_.view(record), [&](const Node &node) { return meet(node); },
        [&](const Leaf &leaf) { return meet(leaf); });
    put();
    const auto behind = static_cast<uint32_t>(out_.start.size());
    if (behind != first) {
      out_.runs.push_back({record.track, record.lane, first, behind - first});
    }
    return whole && behind <= limit_;
  }

 private:
  Go meet(const Node &node) {
    const int64_t begin = cut(node.begin), end = std::max(cut(node.end), begin);
    if (out_.start.size() > limit_) {
      return Go::kStop;
    }
    if (begin >= end_ || end < begin_ || (end == begin_ && begin < begin_)) {
      return Go::kSkip;
    }
    if (begin >= begin_ && end <= end_ && end - begin <= grain_ && node.slices != 0) {
      add({begin, end, node.busy, node.longest, node.name, node.row, node.link, node.slices});
      return Go::kSkip;
    }
    return Go::kInto;
  }

  bool meet(const Leaf &leaf) {
    std::array<int64_t, kLeaf> start, duration;
    leaf.times(start.data(), duration.data());
    for (uint32_t i = 0; i < leaf.size(); ++i) {
      const int64_t end = start[i] + duration[i];
      if (start[i] >= end_) {
        break;
      }
      if (end < begin_ || (end == begin_ && start[i] < begin_)) {
        continue;
      }
      if (any_ && joins(end) && duration[i] <= now_.longest) {
        now_.end = std::max(now_.end, end);
        now_.busy = plus(now_.busy, duration[i]);
        ++now_.slices;
        continue;
      }
      add({start[i], end, duration[i], duration[i], leaf.name(i), leaf.row(i), leaf.link(i), 1});
    }
    return true;
  }

  bool joins(int64_t end) const { return std::min(end, end_) - std::max(now_.begin, begin_) <= grain_; }

  void add(const Piece &piece) {
    if (any_ && joins(piece.end)) {
      now_.end = std::max(now_.end, piece.end);
      now_.busy = plus(now_.busy, piece.busy);
      now_.slices += piece.slices;
      if (piece.longest > now_.longest) {
        now_.longest = piece.longest;
        now_.name = piece.name;
        now_.row = piece.row;
        now_.link = piece.link;
      }
      return;
    }
    put();
    now_ = piece;
    any_ = true;
  }

  void put() {
    if (!any_) {
      return;
    }
    any_ = false;
    const int64_t duration = std::max<int64_t>(now_.end - now_.begin, 0);
    out_.start.push_back(now_.begin);
    out_.duration.push_back(duration);
    out_.name.push_back(now_.name);
    out_.row.push_back(now_.row);
    out_.slices.push_back(now_.slices);
    out_.busy.push_back(duration == 0 ? 1.0F
                                      : std::clamp(static_cast<float>(static_cast<double>(now_.busy) /
                                                                      static_cast<double>(duration)),
                                                   0.0F, 1.0F));
    out_.link.push_back(now_.link);
  }

  const Index &index_;
  int64_t begin_, end_, grain_;
  uint64_t limit_;
  Rects &out_;
  Piece now_{};
  bool any_ = false;
};

}  // namespace

void viewport(const Index &index, int64_t begin, int64_t end, int64_t grain, std::span<const uint32_t> tracks,
              uint64_t limit, Rects &out) {
  begin = bound(begin);
  end = std::max(bound(end), begin);
  std::vector<const LaneRecord *> lanes;
  for (const uint32_t track : tracks) {
    for (const LaneRecord &lane : index.lanes(track)) {
      lanes.push_back(&lane);
    }
  }
  limit = std::max<uint64_t>(limit, lanes.size());
  for (grain = std::clamp<int64_t>(grain, 0, end - begin);;) {
    out.clear();
    out.grain = grain;
    size_t done = 0;
    for (; done < lanes.size(); ++done) {
      Drawing drawing(index, begin, end, grain, limit, out);
      if (!drawing.draw(*lanes[done])) {
        break;
      }
    }
    if (done == lanes.size() || grain >= end - begin) {
      return;
    }
    // Twice as wide, half as many, where they are dense; the last lane counts as half done.
    const double share = (static_cast<double>(done) + 0.5) / static_cast<double>(lanes.size());
    const double wider = static_cast<double>(std::max<int64_t>(grain, 1)) * std::max(1.25, 1.1 / share);
    grain = wider >= static_cast<double>(end - begin)
                ? end - begin
                : std::max(grain + 1, static_cast<int64_t>(std::ceil(wider)));
  }
}

}  // namespace warpline::desk::lod
