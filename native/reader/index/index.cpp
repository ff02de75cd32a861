// Opens an index file and checks every offset in it.
#include "index.h"

namespace warplens::reader::lod {

namespace {

template <typename Record>
bool fits(uint64_t offset, uint64_t count, uint64_t size) {
  return offset <= size && offset % alignof(Record) == 0 && count <= (size - offset) / sizeof(Record);
}

// Number of nodes of a lane with `leaves` leaves; 0 if no file could hold them.
uint64_t nodes_of(uint64_t leaves) {
  if (leaves > uint64_t{1} << 40) {
    return 0;
  }
  uint64_t all = leaves;
  while (leaves > 1) {
    leaves = (leaves + kFan - 1) / kFan;
    all += leaves;
  }
  return all;
}

}  // namespace

bool Index::open(const uint8_t *base, uint64_t size, const Sections &sections) {
  if (reinterpret_cast<uintptr_t>(base) % alignof(Node) != 0 || sections.slices > sections.slices_end ||
      sections.slices_end > size || !fits<Node>(sections.nodes, sections.nodes_count, size) ||
      !fits<LaneRecord>(sections.lanes, sections.lanes_count, size) ||
      !fits<TrackRecord>(sections.tracks, sections.tracks_count, size) ||
      !fits<NameRecord>(sections.names, sections.names_count, size)) {
    return false;
  }
  base_ = base;
  sections_ = sections;
  nodes_ = reinterpret_cast<const Node *>(base + sections.nodes);
  lanes_ = {reinterpret_cast<const LaneRecord *>(base + sections.lanes), sections.lanes_count};
  tracks_ = {reinterpret_cast<const TrackRecord *>(base + sections.tracks), sections.tracks_count};
  names_ = {reinterpret_cast<const NameRecord *>(base + sections.names), sections.names_count};
  const bool lanes_fit = std::all_of(lanes_.begin(), lanes_.end(), [&](const LaneRecord &lane) {
    const uint64_t nodes = nodes_of(lane.leaves);
    return lane.track < sections.tracks_count && (nodes != 0 || lane.leaves == 0) &&
           lane.first_node <= sections.nodes_count && nodes <= sections.nodes_count - lane.first_node;
  });
  return lanes_fit && std::all_of(tracks_.begin(), tracks_.end(), [&](const TrackRecord &track) {
           return track.first_lane <= sections.lanes_count &&
                  track.lanes <= sections.lanes_count - track.first_lane;
         });
}

LaneView Index::view(const LaneRecord &record) const {
  LaneView view;
  view.record = &record;
  view.nodes = nodes_ + record.first_node;
  uint64_t count = record.leaves;
  for (uint64_t offset = 0; count != 0 && view.levels < kMostLevels; ++view.levels) {
    view.offset[view.levels] = offset;
    view.count[view.levels] = count;
    offset += count;
    count = count == 1 ? 0 : (count + kFan - 1) / kFan;
  }
  return view;
}

}  // namespace warplens::reader::lod
