// Opens an index file and checks every offset in it.
// It stays in memory as it is in its file.
#pragma once

#include <algorithm>
#include <span>

#include "format.h"
#include "pack.h"

namespace warplens::reader::lod {

// Where the parts of the file are; the header in numbers.
struct Sections {
  uint64_t slices, slices_end;  // packed slices
  uint64_t nodes, nodes_count;
  uint64_t lanes, lanes_count;
  uint64_t tracks, tracks_count;
  uint64_t names, names_count;
};

// One lane; `offset[level]` is the number of the first node of a level.
struct LaneView {
  const LaneRecord *record = nullptr;
  const Node *nodes = nullptr;
  std::array<uint64_t, kMostLevels> offset{};
  std::array<uint64_t, kMostLevels> count{};
  uint32_t levels = 0;
};

enum class Go { kSkip, kInto, kStop };

class Index {
 public:
  // False where the sections do not fit into `size` bytes, or into one another.
  bool open(const uint8_t *base, uint64_t size, const Sections &sections);

  std::span<const TrackRecord> tracks() const { return tracks_; }
  std::span<const NameRecord> names() const { return names_; }
  // The lanes of a track; none for a number that no track has.
  std::span<const LaneRecord> lanes(uint32_t track) const {
    return track < tracks_.size() ? lanes_.subspan(tracks_[track].first_lane, tracks_[track].lanes)
                                  : std::span<const LaneRecord>();
  }
  LaneView view(const LaneRecord &record) const;

  // Visits the tree of a lane in order of time, or backward: `node(node)` says what to do with it, `leaf(leaf)` is called for the
  // leaves that are gone into and says whether to go on.
  template <bool kBackward = false, typename OfNode, typename OfLeaf>
  bool walk(const LaneView &lane, const OfNode &of_node, const OfLeaf &of_leaf) const {
    return lane.levels == 0 || step<kBackward>(lane, lane.levels - 1, 0, of_node, of_leaf);
  }

 private:
  template <bool kBackward, typename OfNode, typename OfLeaf>
  bool step(const LaneView &lane, uint32_t level, uint64_t number, const OfNode &of_node,
            const OfLeaf &of_leaf) const {
    const Node &node = lane.nodes[lane.offset[level] + number];
    switch (of_node(node)) {
      case Go::kSkip:
        return true;
      case Go::kStop:
        return false;
      case Go::kInto:
        break;
    }
    if (level == 0) {
      return !readable(node) || of_leaf(Leaf(node, base_ + node.first));
    }
    const uint64_t first = number * kFan;
    const uint64_t behind = std::min(first + kFan, lane.count[level - 1]);
    for (uint64_t i = 0; i < behind - first; ++i) {
      if (!step<kBackward>(lane, level - 1, kBackward ? behind - 1 - i : first + i, of_node, of_leaf)) {
        return false;
      }
    }
    return true;
  }
  bool readable(const Node &leaf) const {
    return leaf.slices <= kLeaf && leaf.first >= sections_.slices && leaf.first <= sections_.slices_end &&
           packed_bytes(leaf) <= sections_.slices_end - leaf.first;
  }

  const uint8_t *base_ = nullptr;
  Sections sections_{};
  const Node *nodes_ = nullptr;
  std::span<const LaneRecord> lanes_;
  std::span<const TrackRecord> tracks_;
  std::span<const NameRecord> names_;
};

}  // namespace warplens::reader::lod
