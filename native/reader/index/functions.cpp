// The functions `index_…`: the index of lanes, written and asked (warplens.timeline.index).
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "builder.h"
#include "columns.h"
#include "find.h"
#include "reader/arrow.h"
#include "reader/door.h"
#include "viewport.h"

namespace warplens::reader {
namespace {

// `offset`: where in the file is written.
std::unique_ptr<lod::Builder> index_builder_new(uint64_t offset) {
  auto builder = std::make_unique<lod::Builder>();
  builder->begin_at(offset);
  return builder;
}
WARPLENS_FUNCTION(index_builder_new);

// Columns: see lod::Batch; `key 0` to `key 3` are its keys. `no_name`: the text of rows without a name.
void index_builder_add(lod::Builder &builder, uint32_t layer, uint64_t first_row, uint32_t no_name,
                       GivenColumns rows) {
  lod::Batch batch{};
  batch.rows = rows.rows();
  batch.start = rows.required<int64_t>("start");
  batch.end = rows.values<int64_t>("end");
  for (uint32_t key = 0; key < lod::kKeys; ++key) {
    batch.keys[key] = rows.values<int64_t>("key " + std::to_string(key));
  }
  batch.id = rows.values<int64_t>("id");
  batch.name = rows.codes<uint32_t>("name");
  batch.no_name = no_name;
  batch.color = rows.numbers<uint32_t>("color");
  batch.depth = rows.values<int32_t>("depth");
  batch.task = rows.values<int64_t>("task");
  batch.link = rows.values<int64_t>("link");
  batch.first_row = first_row;
  batch.layer = layer;
  builder.add(batch);
}
WARPLENS_FUNCTION(index_builder_add);

// What is to be written next; it stays there until `index_builder_taken`.
Array<const uint8_t> index_builder_fresh(lod::Builder &builder) {
  return {builder.fresh().data(), builder.fresh().size()};
}
WARPLENS_FUNCTION(index_builder_fresh);

void index_builder_taken(lod::Builder &builder) {
  builder.taken();
}
WARPLENS_FUNCTION(index_builder_taken);

// 1: `index_builder_close` needs the file as it is by now.
int64_t index_builder_disordered(lod::Builder &builder) {
  return builder.disordered() ? 1 : 0;
}
WARPLENS_FUNCTION(index_builder_disordered);

void index_builder_close(lod::Builder &builder, Array<const uint8_t> file) {
  builder.close(file.data, file.size);
}
WARPLENS_FUNCTION(index_builder_close);

// 1: call again, there are more.
int64_t index_builder_nodes(lod::Builder &builder) {
  return builder.emit_nodes() ? 1 : 0;
}
WARPLENS_FUNCTION(index_builder_nodes);

template <typename Record>
Array<const uint8_t> bytes_of(const std::vector<Record> &records) {
  return {reinterpret_cast<const uint8_t *>(records.data()), records.size() * sizeof(Record)};
}

// The records of lanes (0), tracks (1) and names (2).
Array<const uint8_t> index_builder_records(lod::Builder &builder, uint32_t which) {
  return which == 0   ? bytes_of(builder.lane_records)
         : which == 1 ? bytes_of(builder.track_records)
                      : bytes_of(builder.names);
}
WARPLENS_FUNCTION(index_builder_records);

// Layer and keys of each track: five numbers.
void index_builder_keys(lod::Builder &builder, Array<int64_t> out) {
  require_size(builder.track_keys.size() * (1 + lod::kKeys), out);
  int64_t *next = out.data;
  for (const auto &key : builder.track_keys) {
    *next++ = key.layer;
    next = std::copy(key.keys.begin(), key.keys.end(), next);
  }
}
WARPLENS_FUNCTION(index_builder_keys);

// `file` stays mapped as long as the index lives. `sections`: the ten numbers of lod::Sections.
std::unique_ptr<lod::Index> index_open(Array<const uint8_t> file, Array<const uint64_t> sections) {
  auto index = std::make_unique<lod::Index>();
  lod::Sections parts{};
  require_size(sizeof parts / sizeof(uint64_t), sections);
  std::memcpy(&parts, sections.data, sizeof parts);
  if (!index->open(file.data, file.size, parts)) {
    throw std::invalid_argument("its parts do not fit together");
  }
  return index;
}
WARPLENS_FUNCTION(index_open);

std::unique_ptr<lod::Rects> index_viewport(lod::Index &index, int64_t begin, int64_t end, int64_t grain,
                                           Array<const uint32_t> tracks, uint64_t limit) {
  auto rects = std::make_unique<lod::Rects>();
  lod::viewport(index, begin, end, grain, {tracks.data, tracks.size}, limit, *rects);
  return rects;
}
WARPLENS_FUNCTION(index_viewport);

// Numbers of runs, and the grain that there had to be.
void index_rects_facts(lod::Rects &rects, Array<int64_t> facts) {
  require_size(2, facts);
  facts[0] = static_cast<int64_t>(rects.runs.size());
  facts[1] = rects.grain;
}
WARPLENS_FUNCTION(index_rects_facts);

// Copies out the runs of rectangles: track, lane, first rectangle and how many.
void index_runs(lod::Rects &rects, Array<uint32_t> runs) {
  require_size(4 * rects.runs.size(), runs);
  uint32_t *next = runs.data;
  for (const lod::Run &run : rects.runs) {
    *next++ = run.track;
    *next++ = run.lane;
    *next++ = run.first;
    *next++ = run.count;
  }
}
WARPLENS_FUNCTION(index_runs);

struct RectColumns {
  std::vector<int64_t> start, duration;
  std::vector<uint32_t> name, row, slices, link;
  std::vector<float> busy;

  explicit RectColumns(size_t rows) {
    for (auto *times : {&start, &duration}) {
      times->resize(rows);
    }
    for (auto *numbers : {&name, &row, &slices, &link}) {
      numbers->resize(rows);
    }
    busy.resize(rows);
  }
};

// What is to be drawn, as columns. `busy`: the share of the rectangle.
ArrowColumns index_rects(lod::Rects &rects) {
  const auto out = std::make_shared<RectColumns>(rects.pieces.size());
  for (size_t at = 0; at < rects.pieces.size(); ++at) {
    const lod::Piece &piece = rects.pieces[at];
    const int64_t whole = std::max<int64_t>(piece.end - piece.begin, 0);
    const double share = whole == 0 ? 1.0 : static_cast<double>(piece.busy) / static_cast<double>(whole);
    out->start[at] = piece.begin;
    out->duration[at] = whole;
    out->name[at] = piece.name;
    out->row[at] = piece.row;
    out->slices[at] = piece.slices;
    out->busy[at] = static_cast<float>(std::clamp(share, 0.0, 1.0));
    out->link[at] = piece.link;
  }
  ArrowColumns columns(out, rects.pieces.size());
  columns.add("start", out->start);
  columns.add("duration", out->duration);
  columns.add("name", out->name);
  columns.add("row", out->row);
  columns.add("slices", out->slices);
  columns.add("busy", out->busy);
  columns.add("link", out->link);
  return columns;
}
WARPLENS_FUNCTION(index_rects);

// Where hits go. Of each: track and lane; start and duration; name, row and link.
struct HitRoom {
  Array<uint32_t> places;
  Array<int64_t> times;
  Array<uint32_t> about;

  uint64_t hits() const { return times.size / 2; }

  void check() const {
    require_size(2 * hits(), places, times);
    require_size(3 * hits(), about);
  }

  template <typename Hits>
  int64_t put(const Hits &hits_to_copy) const {
    uint64_t at = 0;
    for (const lod::Hit &hit : hits_to_copy) {
      if (at == hits()) {
        break;
      }
      places[2 * at] = hit.track;
      places[2 * at + 1] = hit.lane;
      times[2 * at] = hit.slice.start;
      times[2 * at + 1] = hit.slice.duration;
      about[3 * at] = hit.slice.name;
      about[3 * at + 1] = hit.slice.row;
      about[3 * at + 2] = hit.slice.link;
      ++at;
    }
    return static_cast<int64_t>(at);
  }
};

// Returns how many hits there are, at most as many as there is room for.
int64_t index_find(lod::Index &index, Array<const uint32_t> names, int64_t begin, int64_t end,
                   Array<const uint32_t> tracks, int32_t backward, Array<uint32_t> places,
                   Array<int64_t> times, Array<uint32_t> about) {
  const HitRoom room{places, times, about};
  room.check();
  return room.put(lod::find(index, {names.data, names.size}, begin, end, {tracks.data, tracks.size},
                            room.hits(), backward != 0));
}
WARPLENS_FUNCTION(index_find);

int64_t index_at(lod::Index &index, uint32_t track, uint32_t lane, int64_t time, Array<uint32_t> places,
                 Array<int64_t> times, Array<uint32_t> about) {
  const HitRoom room{places, times, about};
  room.check();
  const auto hit = lod::at(index, track, lane, time);
  return room.put(hit ? std::vector{*hit} : std::vector<lod::Hit>());
}
WARPLENS_FUNCTION(index_at);

// `start` (null: not known): when the row begins.
int64_t index_locate(lod::Index &index, Array<const uint32_t> tracks, uint32_t row,
                     Array<const int64_t> start, Array<uint32_t> places, Array<int64_t> times,
                     Array<uint32_t> about) {
  const HitRoom room{places, times, about};
  room.check();
  const auto hit = lod::locate(index, {tracks.data, tracks.size}, row,
                               start.size == 0 ? std::nullopt : std::optional(start[0]));
  return room.put(hit ? std::vector{*hit} : std::vector<lod::Hit>());
}
WARPLENS_FUNCTION(index_locate);

// Of each track: how long something ran in [begin, end), and how many slices overlap it.
void index_load(lod::Index &index, Array<const uint32_t> tracks, int64_t begin, int64_t end,
                Array<int64_t> busy, Array<int64_t> events) {
  require_size(tracks.size, busy, events);
  for (uint64_t i = 0; i < tracks.size; ++i) {
    const lod::Load load = lod::load_of(index, tracks[i], begin, end);
    busy[i] = load.busy;
    events[i] = static_cast<int64_t>(load.events);
  }
}
WARPLENS_FUNCTION(index_load);

// Of each name: time and longest piece in [begin, end), and how many slices overlap it.
void index_sums(lod::Index &index, Array<const uint32_t> tracks, int64_t begin, int64_t end,
                Array<int64_t> total, Array<int64_t> longest, Array<int64_t> count) {
  std::vector<lod::Sum> sums(index.names().size());
  require_size(sums.size(), total, longest, count);
  lod::sum_up(index, {tracks.data, tracks.size}, begin, end, sums);
  for (size_t name = 0; name < sums.size(); ++name) {
    total[name] = sums[name].total;
    longest[name] = sums[name].longest;
    count[name] = static_cast<int64_t>(sums[name].count);
  }
}
WARPLENS_FUNCTION(index_sums);

// The cells of a row that some lanes (`lanes`: track and lane of each) make, in order of column; there is room for `columns` of them.
// Returns how many there are. Of each: busy time, time covered, and time of its group; slices, those of the group that begin in it, begin
// of its longest; column, group, and row, name and track of its longest slice.
int64_t index_cells(lod::Index &index, Array<const uint32_t> lanes, int64_t begin, int64_t end,
                    uint32_t columns, Array<const uint32_t> groups, Array<double> times,
                    Array<int64_t> counts, Array<uint32_t> about) {
  require_size(3 * uint64_t{columns}, times, counts);
  require_size(5 * uint64_t{columns}, about);
  std::vector<lod::LaneOf> wanted;
  wanted.reserve(lanes.size / 2);
  for (uint64_t at = 0; at + 1 < lanes.size; at += 2) {
    wanted.push_back({lanes[at], lanes[at + 1]});
  }
  const auto cells = lod::cells_of(index, wanted, begin, end, columns, {groups.data, groups.size});
  double *time = times.data;
  int64_t *number = counts.data;
  uint32_t *fact = about.data;
  for (const lod::Cell &cell : cells) {
    for (const double value : {cell.busy, cell.covered, cell.time}) {
      *time++ = value;
    }
    for (const int64_t value :
         {static_cast<int64_t>(cell.number), static_cast<int64_t>(cell.begun), cell.start}) {
      *number++ = value;
    }
    for (const uint32_t value : {cell.column, cell.group, cell.row, cell.name, cell.track}) {
      *fact++ = value;
    }
  }
  return static_cast<int64_t>(cells.size());
}
WARPLENS_FUNCTION(index_cells);

}  // namespace
}  // namespace warplens::reader
