// Builds an index of lanes in one pass.
#include "builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "pack.h"

namespace warplens::reader::lod {

namespace {

constexpr size_t kBlock = 1 << 13;           // rows
constexpr size_t kEnough = size_t{1} << 23;  // bytes of nodes that go out together

uint64_t mix(uint64_t value) {
  value *= 0x9E3779B97F4A7C15U;
  return value ^ value >> 32;
}

constexpr std::array<uint64_t, kKeys> kOdd = {0xD6E8FEB86659FD93U, 0xA0761D6478BD642FU, 0xE7037ED1A0B428DBU,
                                              0x8EBC6AF09C88C6E3U};

// Numbers of launches are those of one process: told apart by what the process adds.
uint32_t link_of(int64_t link, int64_t process) {
  if (link < 0) {
    return kNone;
  }
  const uint32_t found = static_cast<uint32_t>(link) + static_cast<uint32_t>(process) * 0x9E3779B1U;
  return found == kNone ? 0 : found;
}

}  // namespace

uint64_t Builder::hash_of(const Key &key) {
  uint64_t hash = key.layer;
  for (uint32_t k = 0; k < kKeys; ++k) {
    hash += static_cast<uint64_t>(key.keys[k]) * kOdd[k];
  }
  return mix(hash);
}

uint32_t Builder::track_of(const Key &key) {
  const uint64_t hash = hash_of(key);
  uint64_t at = hash & (slots_.size() - 1);
  for (; slots_[at].track != kNone; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at].hash == hash && tracks_[slots_[at].track].key == key) {
      return slots_[at].track;
    }
  }
  const auto track = static_cast<uint32_t>(tracks_.size());
  tracks_.emplace_back();
  tracks_.back().key = key;
  slots_[at] = {hash, track};
  if (tracks_.size() * 2 > slots_.size()) {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot &slot : old) {
      if (slot.track != kNone) {
        uint64_t to = slot.hash & (slots_.size() - 1);
        while (slots_[to].track != kNone) {
          to = (to + 1) & (slots_.size() - 1);
        }
        slots_[to] = slot;
      }
    }
  }
  return track;
}

uint32_t Builder::name_of(uint32_t text, uint32_t color) {
  const auto [at, added] =
      name_numbers_.try_emplace(uint64_t{text} << 32 | color, static_cast<uint32_t>(names.size()));
  if (added) {
    names.push_back({INT64_MAX, INT64_MIN, 0, text, color});
  }
  return at->second;
}

Builder::Key Builder::key_of(const Batch &batch, uint64_t row) {
  Key key{batch.layer, {}};
  for (uint32_t k = 0; k < kKeys; ++k) {
    key.keys[k] = batch.keys[k] == nullptr ? -1 : batch.keys[k][row];
  }
  return key;
}

// Rows in order of start, within each track at least; empty where they are so as they come.
std::vector<uint32_t> Builder::order_of(const Batch &batch) {
  std::vector<uint32_t> order;
  if (std::is_sorted(batch.start, batch.start + batch.rows)) {
    return order;
  }
  std::vector<int64_t> last;
  bool sorted = true;
  for (uint64_t i = 0; i < batch.rows && sorted; ++i) {
    const uint32_t track = track_of(key_of(batch, i));
    if (track >= last.size()) {
      last.resize(tracks_.size(), INT64_MIN);
    }
    sorted = batch.start[i] >= last[track];
    last[track] = batch.start[i];
  }
  if (!sorted) {
    order.resize(batch.rows);
    std::iota(order.begin(), order.end(), uint32_t{0});
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
      return batch.start[a] != batch.start[b] ? batch.start[a] < batch.start[b]
             : batch.end == nullptr           ? false
                                              : batch.end[a] > batch.end[b];
    });
  }
  return order;
}

uint32_t Builder::name_at(const Batch &batch, uint64_t row) {
  const bool named = batch.name.has(row);
  const uint64_t slot = named ? static_cast<uint64_t>(batch.name.codes[row]) : batch.name.size;
  const uint32_t color = batch.color.has(row) ? batch.color.values[row] & 0xFFFFFF : kNone;
  Seen &name = seen_[slot];
  if (name.name == kNone || name.color != color) {
    name = {color, name_of(named ? batch.name.values[slot] : batch.no_name, color)};
  }
  return name.name;
}

void Builder::add(const Batch &batch) {
  seen_.assign(batch.name.size + 1, {});
  const std::vector<uint32_t> order = order_of(batch);
  // Some rows at a time, track by track: what belongs to a track is then at hand. Columns are read from end to end; to jump
  // about in them would take longer than all else.
  std::vector<uint32_t> tracks(kBlock);
  std::vector<Row> sorted(kBlock);
  for (uint64_t first = 0; first < batch.rows; first += kBlock) {
    const size_t count = std::min<uint64_t>(kBlock, batch.rows - first);
    const auto at = [&](size_t i) { return order.empty() ? first + i : order[first + i]; };
    for (size_t i = 0; i < count; ++i) {
      tracks[i] = track_of(key_of(batch, at(i)));
    }
    place_.resize(tracks_.size());
    met_.clear();
    for (size_t i = 0; i < count; ++i) {
      if (place_[tracks[i]]++ == 0) {
        met_.push_back(tracks[i]);
      }
    }
    uint32_t behind = 0;
    for (const uint32_t track : met_) {
      behind += std::exchange(place_[track], behind);
    }
    for (size_t i = 0; i < count; ++i) {
      sorted[place_[tracks[i]]++] = row_of(batch, at(i));
    }
    size_t next = 0;
    for (const uint32_t track : met_) {
      for (; next < place_[track]; ++next) {
        put(tracks_[track], sorted[next].slice, sorted[next].depth, sorted[next].task);
      }
      place_[track] = 0;
    }
  }
}

Builder::Row Builder::row_of(const Batch &batch, uint64_t i) {
  Slice slice{};
  slice.start = cut(batch.start[i]);
  const int64_t end = batch.end == nullptr ? slice.start : cut(batch.end[i]);
  slice.duration = end > slice.start ? end - slice.start : 0;
  slice.name = name_at(batch, i);
  slice.row =
      static_cast<uint32_t>(batch.id == nullptr ? batch.first_row + i : static_cast<uint64_t>(batch.id[i]));
  slice.link = batch.link == nullptr
                   ? kNone
                   : link_of(batch.link[i], batch.keys[0] == nullptr ? -1 : batch.keys[0][i]);
  NameRecord &record = names[slice.name];
  record.first = std::min(record.first, slice.start);
  record.last = std::max(record.last, slice.start);
  ++record.count;
  const int32_t depth = batch.depth == nullptr ? 0 : batch.depth[i];
  return {slice, depth < 0 ? 0 : static_cast<uint32_t>(depth), batch.task == nullptr ? -1 : batch.task[i]};
}

void Builder::put(Track &track, const Slice &slice, uint32_t depth, int64_t task) {
  const int64_t end = slice.start + slice.duration;
  if (slice.start < track.last_start) {
    track.ordered = false;
    disordered_ = true;
  }
  ++track.events;
  uint32_t number = depth;
  if (track.ordered) {
    track.last_start = slice.start;
    track.begin = std::min(track.begin, slice.start);
    track.end = std::max(track.end, end);
    if (task >= 0) {
      if (depth == 0) {
        number = track.free.take(0, slice.start, end);
        track.tasks[task] = number;
      } else {
        const auto at = track.tasks.find(task);
        number = track.free.take(depth + (at == track.tasks.end() ? 0 : at->second), slice.start, end);
      }
    } else {
      number = track.free.take(depth, slice.start, end);
    }
    const int64_t from = std::max(slice.start, track.covered);
    if (end > from) {
      track.busy = plus(track.busy, end - from);
      track.nested = track.nested && number == 0;
      track.covered = end;
    }
  } else {
    // Sorted, and placed, when all are there; until then the lane keeps the depth.
    number = static_cast<uint32_t>(std::min<size_t>(depth, track.lanes.size() + FreeLanes::kGap));
  }
  if (number >= track.lanes.size()) {
    track.lanes.resize(number + 1);
  }
  Lane &lane = track.lanes[number];
  track.rows_ascend = track.rows_ascend && (lane.slices == 0 || slice.row >= lane.last_row);
  lane.last_row = slice.row;
  ++lane.slices;
  lane.open.push_back(slice);
  if (lane.open.size() == kLeaf) {
    flush(lane);
  }
}

void Builder::flush(Lane &lane) {
  if (lane.open.empty()) {
    return;
  }
  const uint64_t at = taken_ + fresh_.size();
  lane.leaves.push_back(pack(lane.open.data(), static_cast<uint32_t>(lane.open.size()), fresh_));
  lane.leaves.back().first = at;
  lane.open.clear();
}

// Takes the slices of a track back out of the file, and places them in order.
void Builder::sort_again(Track &track, const uint8_t *file, uint64_t size) {
  struct Placed {
    Slice slice;
    uint32_t depth;
  };
  std::vector<Placed> all;
  all.reserve(track.events);
  for (uint32_t number = 0; number < track.lanes.size(); ++number) {
    Lane &lane = track.lanes[number];
    for (const Node &node : lane.leaves) {
      if (node.first + packed_bytes(node) > size) {
        continue;  // not what was written
      }
      const Leaf leaf(node, file + node.first);
      for (uint32_t i = 0; i < leaf.size(); ++i) {
        all.push_back({leaf.slice(i), number});
      }
    }
    for (const Slice &slice : lane.open) {
      all.push_back({slice, number});
    }
    lane = Lane();
  }
  std::stable_sort(all.begin(), all.end(), [](const Placed &a, const Placed &b) {
    return a.slice.start != b.slice.start ? a.slice.start < b.slice.start
                                          : a.slice.duration > b.slice.duration;
  });
  const Key key = track.key;
  track = Track();
  track.key = key;
  for (const Placed &placed : all) {
    put(track, placed.slice, placed.depth, -1);
  }
}

void Builder::close(const uint8_t *file, uint64_t size) {
  for (Track &track : tracks_) {
    if (!track.ordered) {
      sort_again(track, file, size);
    }
    for (Lane &lane : track.lanes) {
      flush(lane);
      lane.open = {};
    }
    track.tasks = {};
  }
}

bool Builder::emit_nodes() {
  for (; next_track_ < tracks_.size() && fresh_.size() < kEnough; ++next_track_) {
    Track &track = tracks_[next_track_];
    TrackRecord record{track.begin, track.end, track.busy, track.events, lane_records.size(), 0, 0};
    record.lanes = static_cast<uint32_t>(track.lanes.size());
    record.flags = (track.nested ? kNested : 0) | (track.rows_ascend ? kRowsAscend : 0);
    for (uint32_t number = 0; number < track.lanes.size(); ++number) {
      Lane &lane = track.lanes[number];
      lane_records.push_back(
          {static_cast<uint32_t>(next_track_), number, nodes_, lane.leaves.size(), lane.slices});
      std::vector<Node> level = std::move(lane.leaves);
      while (!level.empty()) {
        const auto *bytes = reinterpret_cast<const uint8_t *>(level.data());
        fresh_.insert(fresh_.end(), bytes, bytes + level.size() * sizeof(Node));
        nodes_ += level.size();
        if (level.size() == 1) {
          break;
        }
        std::vector<Node> above((level.size() + kFan - 1) / kFan);
        for (size_t i = 0; i < level.size(); ++i) {
          const Node &child = level[i];
          Node &node = above[i / kFan];
          if (i % kFan == 0) {
            node = child;
            node.first = 0;
            node.name_base = node.link_base = 0;
            node.widths = 0;
            continue;
          }
          node.end = std::max(node.end, child.end);
          node.busy = plus(node.busy, child.busy);
          node.names |= child.names;
          node.slices += child.slices;
          node.row_base = std::min(node.row_base, child.row_base);
          if (child.longest > node.longest) {
            node.longest = child.longest;
            node.name = child.name;
            node.row = child.row;
            node.link = child.link;
          }
        }
        level = std::move(above);
      }
    }
    track_keys.push_back(track.key);
    track_records.push_back(record);
    track = Track();
  }
  return next_track_ < tracks_.size();
}

}  // namespace warplens::reader::lod
