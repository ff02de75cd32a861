// Builds an index of lanes from batches of rows, in one pass: what is complete goes out at once, only its nodes are kept.
#pragma once

#include <array>
#include <unordered_map>
#include <vector>

#include "format.h"
#include "lanes.h"
#include "reader/arrow.h"

namespace warplens::reader::lod {

constexpr uint32_t kKeys = 4;  // numbers that say which track of a layer it is

// Rows as columns; those that are null pointers are left out.
struct Batch {
  uint64_t rows;
  const int64_t *start;
  const int64_t *end;  // null: instants
  std::array<const int64_t *, kKeys> keys;
  const int64_t *id;             // its low half is the row; null: rows count from `first_row`
  GivenCodes<uint32_t> name;     // texts
  uint32_t no_name;              // the text of rows without a name
  GivenNumbers<uint32_t> color;  // 0xAARRGGBB
  const int32_t *depth;          // the lane to start looking at; null: 0
  const int64_t *task;           // rows of one keep to lanes beside one another; -1: of none
  const int64_t *link;           // number of the launch in the process; -1: none
  uint64_t first_row;
  uint32_t layer;
};

class Builder {
 public:
  void add(const Batch &batch);
  // Ends the lanes of all tracks. `file`: what was taken out so far, at its place in the file; needed where rows came out of order.
  void close(const uint8_t *file, uint64_t size);
  bool disordered() const { return disordered_; }
  // Nodes of more lanes, in order; false: there are none left.
  bool emit_nodes();

  std::vector<uint8_t> &fresh() {
    return fresh_;
  }  // to be written behind what was, and then cleared by `taken`
  void taken() {
    taken_ += fresh_.size();
    fresh_.clear();
  }
  void begin_at(uint64_t offset) { taken_ = offset; }

  struct Key {
    uint32_t layer;
    std::array<int64_t, kKeys> keys;
    bool operator==(const Key &other) const {  // no call of memcmp for it
      return layer == other.layer && keys[0] == other.keys[0] && keys[1] == other.keys[1] &&
             keys[2] == other.keys[2] && keys[3] == other.keys[3];
    }
  };
  std::vector<TrackRecord> track_records;
  std::vector<Key> track_keys;
  std::vector<LaneRecord> lane_records;
  std::vector<NameRecord> names;

 private:
  struct Lane {
    std::vector<Slice> open;
    std::vector<Node> leaves;
    uint64_t slices = 0;
    uint32_t last_row = 0;
  };
  struct Track {
    Key key;
    FreeLanes free;
    std::vector<Lane> lanes;
    std::unordered_map<int64_t, uint32_t> tasks;  // lane of the outermost open row
    int64_t last_start = INT64_MIN;
    int64_t covered = INT64_MIN;
    int64_t begin = INT64_MAX, end = INT64_MIN, busy = 0;
    uint64_t events = 0;
    bool ordered = true, nested = true, rows_ascend = true;
  };
  struct Row {
    Slice slice;
    uint32_t depth;
    int64_t task;
  };
  struct Slot {
    uint64_t hash = 0;
    uint32_t track = kNone;
  };
  struct Seen {  // names by code in the batch, for the last color of each
    uint32_t color = 0;
    uint32_t name = kNone;
  };

  static Key key_of(const Batch &batch, uint64_t row);
  static uint64_t hash_of(const Key &key);
  uint32_t track_of(const Key &key);
  uint32_t name_at(const Batch &batch, uint64_t row);
  uint32_t name_of(uint32_t text, uint32_t color);
  std::vector<uint32_t> order_of(const Batch &batch);
  Row row_of(const Batch &batch, uint64_t row);
  void put(Track &track, const Slice &slice, uint32_t depth, int64_t task);
  void flush(Lane &lane);
  void sort_again(Track &track, const uint8_t *file, uint64_t size);

  std::vector<Track> tracks_;
  std::vector<Slot> slots_ = std::vector<Slot>(64);  // of the tracks, by their hash
  std::vector<uint32_t> place_, met_;
  std::unordered_map<uint64_t, uint32_t> name_numbers_;  // text << 32 | color
  std::vector<Seen> seen_;
  std::vector<uint8_t> fresh_;
  uint64_t taken_ = 0;
  uint64_t nodes_ = 0;
  size_t next_track_ = 0;
  bool disordered_ = false;
};

}  // namespace warplens::reader::lod
