// Computes the rectangles of a view.
#include "viewport.h"

#include "grain.h"

namespace warplens::reader::lod {
namespace {

// Where there are too many rectangles: as much wider as what is left to draw seems to need, and at least so much.
constexpr double kWider = 1.25, kRoom = 1.1;

// Puts the pieces of one lane behind `out`, joining those that are narrower than the grain together.
class Joining {
 public:
  Joining(int64_t begin, int64_t end, int64_t grain, std::vector<Piece> &out)
      : begin_(begin), end_(end), grain_(grain), out_(out) {}

  void add(const Piece &piece) {
    if (!any_ || piece.end > reach_) {
      begin(piece);
      return;
    }
    now_.end = std::max(now_.end, piece.end);
    now_.busy = plus(now_.busy, piece.busy);
    now_.slices += piece.slices;
    if (piece.longest > now_.longest) {
      now_.longest = piece.longest;
      now_.name = piece.name;
      now_.row = piece.row;
      now_.link = piece.link;
    }
  }

  // Slices [i, behind) of a leaf.
  void add(const Leaf &leaf, const int64_t *start, const int64_t *duration, uint32_t i, uint32_t behind) {
    if (any_) {
      i = join(leaf, start, duration, i, behind);
    }
    while (i < behind) {
      begin({start[i], start[i] + duration[i], duration[i], duration[i], leaf.name(i), leaf.row(i),
             leaf.link(i), 1});
      i = join(leaf, start, duration, i + 1, behind);
    }
  }

  void put() {
    if (any_) {
      out_.push_back(now_);
      any_ = false;
    }
  }

 private:
  void begin(const Piece &piece) {
    put();
    now_ = piece;
    any_ = true;
    const int64_t from = std::max(piece.begin, begin_);
    reach_ = end_ - from <= grain_ ? INT64_MAX : from + grain_;
  }

  // Joins slices as long as they are within reach; returns the first that is not.
  uint32_t join(const Leaf &leaf, const int64_t *start, const int64_t *duration, uint32_t i,
                uint32_t behind) {
    const uint32_t first = i;
    const int64_t reach = reach_;
    int64_t last = now_.end, busy = now_.busy, longest = now_.longest;
    uint32_t of = behind;
    for (; i < behind && start[i] + duration[i] <= reach; ++i) {
      last = std::max(last, start[i] + duration[i]);
      busy = plus(busy, duration[i]);
      of = duration[i] > longest ? i : of;
      longest = std::max(longest, duration[i]);
    }
    now_.end = last;
    now_.busy = busy;
    now_.slices += i - first;
    if (of != behind) {
      now_.longest = longest;
      now_.name = leaf.name(of);
      now_.row = leaf.row(of);
      now_.link = leaf.link(of);
    }
    return i;
  }

  int64_t begin_, end_, grain_;
  std::vector<Piece> &out_;
  Piece now_{};
  int64_t reach_ = 0;  // what ends until then joins
  bool any_ = false;
};

class Drawing {
 public:
  Drawing(const Index &index, int64_t begin, int64_t end, int64_t grain, uint64_t limit,
          std::vector<Piece> &out)
      : index_(index),
        begin_(begin),
        end_(end),
        grain_(grain),
        limit_(limit),
        out_(out),
        joining_(begin, end, grain, out) {}

  // False: there are more rectangles than the limit allows.
  bool draw(const LaneRecord &record) {
    const bool whole = index_.walk(
        index_.view(record), [&](const Node &node) { return meet(node); },
        [&](const Leaf &leaf) { return meet(leaf); });
    joining_.put();
    return whole && out_.size() <= limit_;
  }

 private:
  Go meet(const Node &node) {
    const int64_t begin = cut(node.begin), end = std::max(cut(node.end), begin);
    if (out_.size() > limit_) {
      return Go::kStop;
    }
    if (begin >= end_ || end < begin_ || (end == begin_ && begin < begin_)) {
      return Go::kSkip;
    }
    if (begin >= begin_ && end <= end_ && end - begin <= grain_ && node.slices != 0) {
      joining_.add({begin, end, node.busy, node.longest, node.name, node.row, node.link, node.slices});
      return Go::kSkip;
    }
    return Go::kInto;
  }

  bool meet(const Leaf &leaf) {
    std::array<int64_t, kLeaf> start, duration;
    leaf.times(start.data(), duration.data());
    uint32_t behind = leaf.size();
    if (behind != 0 && start[0] >= begin_ && start[behind - 1] < end_) {
      joining_.add(leaf, start.data(), duration.data(), 0, behind);
      return true;
    }
    const auto shown = [&](uint32_t i) {
      const int64_t end = start[i] + duration[i];
      return end > begin_ || (end == begin_ && start[i] >= begin_);
    };
    for (uint32_t i = 0; i < leaf.size() && start[i] < end_; i = behind) {
      for (; i < leaf.size() && start[i] < end_ && !shown(i); ++i) {
      }
      for (behind = i; behind < leaf.size() && start[behind] < end_ && shown(behind); ++behind) {
      }
      joining_.add(leaf, start.data(), duration.data(), i, behind);
    }
    return true;
  }

  const Index &index_;
  int64_t begin_, end_, grain_;
  uint64_t limit_;
  std::vector<Piece> &out_;
  Joining joining_;
};

// Joins what was drawn with a finer grain.
void coarsen(int64_t begin, int64_t end, Rects &rects) {
  std::vector<Piece> fewer;
  fewer.reserve(rects.pieces.size());
  for (Run &run : rects.runs) {
    const auto first = static_cast<uint32_t>(fewer.size());
    Joining joining(begin, end, rects.grain, fewer);
    for (const Piece &piece : std::span(rects.pieces).subspan(run.first, run.count)) {
      joining.add(piece);
    }
    joining.put();
    run.first = first;
    run.count = static_cast<uint32_t>(fewer.size()) - first;
  }
  rects.pieces.swap(fewer);
}

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
  if (lanes.empty()) {
    out.grain = std::clamp<int64_t>(grain, 0, end - begin);
    return;
  }
  out.grain = starting_grain(index, lanes, begin, end, std::clamp<int64_t>(grain, 0, end - begin), limit);
  for (size_t lane = 0; lane < lanes.size();) {
    const auto first = static_cast<uint32_t>(out.pieces.size());
    const bool fits = Drawing(index, begin, end, out.grain, limit, out.pieces).draw(*lanes[lane]);
    if (fits || out.grain >= end - begin) {
      const auto count = static_cast<uint32_t>(out.pieces.size()) - first;
      if (count != 0) {
        out.runs.push_back({lanes[lane]->track, lanes[lane]->lane, first, count});
      }
      ++lane;
      continue;
    }
    // That lane is drawn once more, those before it are joined where they are. It counts as half done.
    out.pieces.resize(first);
    const double share = (static_cast<double>(lane) + 0.5) / static_cast<double>(lanes.size());
    const double wider =
        static_cast<double>(std::max<int64_t>(out.grain, 1)) * std::max(kWider, kRoom / share);
    out.grain = static_cast<int64_t>(
        std::clamp(wider, static_cast<double>(out.grain + 1), static_cast<double>(end - begin)));
    coarsen(begin, end, out);
  }
}

}  // namespace warplens::reader::lod
