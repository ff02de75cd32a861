// The C functions of the index of lanes that warplens.timeline.index calls through ctypes. Negative results are errors.
#include <algorithm>
#include <cstring>
#include <memory>

#include "builder.h"
#include "columns.h"
#include "find.h"
#include "reader/guard.h"
#include "viewport.h"

namespace lod = warplens::desk::lod;
using warplens::desk::guarded;

namespace {

template <typename Hits>
void copy_hits(const Hits &hits, uint32_t *places, int64_t *times, uint32_t *about) {
  for (const lod::Hit &hit : hits) {
    *places++ = hit.track;
    *places++ = hit.lane;
    *times++ = hit.slice.start;
    *times++ = hit.slice.duration;
    *about++ = hit.slice.name;
    *about++ = hit.slice.row;
    *about++ = hit.slice.link;
  }
}

}  // namespace

// What is to be written goes behind `offset` in the file.
WARPLENS_API lod::Builder *warplens_lod_new(uint64_t offset) {
  try {
    auto builder = std::make_unique<lod::Builder>();
    builder->begin_at(offset);
    return builder.release();
  } catch (...) {
    return nullptr;
  }
}

WARPLENS_API void warplens_lod_free(lod::Builder *builder) {
  delete builder;
}

WARPLENS_API int64_t warplens_lod_add(lod::Builder *builder, const lod::Batch *batch) {
  return guarded([&] {
    builder->add(*batch);
    return 0;
  });
}

// What is to be written next; it stays there until `taken`.
WARPLENS_API const uint8_t *warplens_lod_fresh(lod::Builder *builder, uint64_t *bytes) {
  *bytes = builder->fresh().size();
  return builder->fresh().data();
}

WARPLENS_API void warplens_lod_taken(lod::Builder *builder) {
  builder->taken();
}

// 1: `close` needs the file as it is by now.
WARPLENS_API int64_t warplens_lod_disordered(const lod::Builder *builder) {
  return builder->disordered() ? 1 : 0;
}

WARPLENS_API int64_t warplens_lod_close(lod::Builder *builder, const uint8_t *file, uint64_t size) {
  return guarded([&] {
    builder->close(file, size);
    return 0;
  });
}

// 1: call again, there are more.
WARPLENS_API int64_t warplens_lod_nodes(lod::Builder *builder) {
  return guarded([&] { return builder->emit_nodes() ? 1 : 0; });
}

// The records of lanes (0), tracks (1) and names (2), and where they lie.
WARPLENS_API const void *warplens_lod_records(const lod::Builder *builder, uint32_t which, uint64_t *bytes) {
  const auto give = [&](const auto &records) -> const void * {
    *bytes = records.size() * sizeof(records[0]);
    return records.data();
  };
  return which == 0   ? give(builder->lane_records)
         : which == 1 ? give(builder->track_records)
                      : give(builder->names);
}

// Layer and keys of each track: five numbers.
WARPLENS_API void warplens_lod_keys(const lod::Builder *builder, int64_t *out) {
  for (const auto &key : builder->track_keys) {
    *out++ = key.layer;
    out = std::copy(key.keys.begin(), key.keys.end(), out);
  }
}

// `sections`: the ten numbers of lod::Sections. Null: out of memory; `broken` becomes 1 where the file is.
WARPLENS_API lod::Index *warplens_lod_open(const uint8_t *base, uint64_t size, const uint64_t *sections,
                                           uint32_t *broken) {
  try {
    auto index = std::make_unique<lod::Index>();
    lod::Sections parts{};
    std::memcpy(&parts, sections, sizeof parts);
    *broken = index->open(base, size, parts) ? 0 : 1;
    return *broken == 0 ? index.release() : nullptr;
  } catch (...) {
    return nullptr;
  }
}

WARPLENS_API void warplens_lod_close_index(lod::Index *index) {
  delete index;
}

// Runs and rectangles go to `counts`; `grain` becomes what it had to be.
WARPLENS_API lod::Rects *warplens_lod_viewport(const lod::Index *index, int64_t begin, int64_t end,
                                               int64_t *grain, const uint32_t *tracks, uint64_t tracks_count,
                                               uint64_t limit, uint64_t *counts) {
  try {
    auto rects = std::make_unique<lod::Rects>();
    lod::viewport(*index, begin, end, *grain, {tracks, tracks_count}, limit, *rects);
    *grain = rects->grain;
    counts[0] = rects->runs.size();
    counts[1] = rects->pieces.size();
    return rects.release();
  } catch (...) {
    return nullptr;
  }
}

// Copies out what was found (`runs`: four numbers each), and frees it.
WARPLENS_API void warplens_lod_rects(lod::Rects *rects, uint32_t *runs, int64_t *start, int64_t *duration,
                                     uint32_t *name, uint32_t *row, uint32_t *slices, float *busy,
                                     uint32_t *link) {
  const std::unique_ptr<lod::Rects> owned(rects);
  for (const lod::Run &run : owned->runs) {
    *runs++ = run.track;
    *runs++ = run.lane;
    *runs++ = run.first;
    *runs++ = run.count;
  }
  for (const lod::Piece &piece : owned->pieces) {
    const int64_t whole = std::max<int64_t>(piece.end - piece.begin, 0);
    const double share = whole == 0 ? 1.0 : static_cast<double>(piece.busy) / static_cast<double>(whole);
    *start++ = piece.begin;
    *duration++ = whole;
    *name++ = piece.name;
    *row++ = piece.row;
    *slices++ = piece.slices;
    *busy++ = static_cast<float>(std::clamp(share, 0.0, 1.0));
    *link++ = piece.link;
  }
}

// Of each hit: track and lane; start and duration; name, row and link. There is room for `limit` of them.
WARPLENS_API int64_t warplens_lod_find(const lod::Index *index, const uint32_t *names, uint64_t names_count,
                                       int64_t begin, int64_t end, const uint32_t *tracks,
                                       uint64_t tracks_count, uint64_t limit, int32_t backward,
                                       uint32_t *places, int64_t *times, uint32_t *about) {
  return guarded([&] {
    const auto hits =
        lod::find(*index, {names, names_count}, begin, end, {tracks, tracks_count}, limit, backward != 0);
    copy_hits(hits, places, times, about);
    return hits.size();
  });
}

WARPLENS_API int64_t warplens_lod_at(const lod::Index *index, uint32_t track, uint32_t lane, int64_t time,
                                     uint32_t *places, int64_t *times, uint32_t *about) {
  return guarded([&] {
    const auto hit = lod::at(*index, track, lane, time);
    copy_hits(hit ? std::vector{*hit} : std::vector<lod::Hit>(), places, times, about);
    return hit ? 1 : 0;
  });
}

// `start` (null: not known): when the row begins.
WARPLENS_API int64_t warplens_lod_locate(const lod::Index *index, const uint32_t *tracks,
                                         uint64_t tracks_count, uint32_t row, const int64_t *start,
                                         uint32_t *places, int64_t *times, uint32_t *about) {
  return guarded([&] {
    const auto hit = lod::locate(*index, {tracks, tracks_count}, row,
                                 start == nullptr ? std::nullopt : std::optional(*start));
    copy_hits(hit ? std::vector{*hit} : std::vector<lod::Hit>(), places, times, about);
    return hit ? 1 : 0;
  });
}

// Of each track: how long something ran in [begin, end), and how many slices overlap it.
WARPLENS_API int64_t warplens_lod_load(const lod::Index *index, const uint32_t *tracks, uint64_t tracks_count,
                                       int64_t begin, int64_t end, int64_t *busy, int64_t *events) {
  return guarded([&] {
    for (uint64_t i = 0; i < tracks_count; ++i) {
      const lod::Load load = lod::load_of(*index, tracks[i], begin, end);
      busy[i] = load.busy;
      events[i] = static_cast<int64_t>(load.events);
    }
    return 0;
  });
}

// Of each name: time and longest piece in [begin, end), and how many slices overlap it.
WARPLENS_API int64_t warplens_lod_sums(const lod::Index *index, const uint32_t *tracks, uint64_t tracks_count,
                                       int64_t begin, int64_t end, int64_t *total, int64_t *longest,
                                       int64_t *count) {
  return guarded([&] {
    std::vector<lod::Sum> sums(index->names().size());
    lod::sum_up(*index, {tracks, tracks_count}, begin, end, sums);
    for (const lod::Sum &sum : sums) {
      *total++ = sum.total;
      *longest++ = sum.longest;
      *count++ = static_cast<int64_t>(sum.count);
    }
    return 0;
  });
}

// The cells of a row that some lanes (track and lane of each) make, in order of column; there is room for `columns` of them. Of each
// cell: busy time, time covered, and time of its group; slices, those of the group that begin in it, begin of its longest; column, group, and row, name
// and track of its longest slice.
WARPLENS_API int64_t warplens_lod_cells(const lod::Index *index, const lod::LaneOf *lanes,
                                        uint64_t lanes_count, int64_t begin, int64_t end, uint32_t columns,
                                        const uint32_t *groups, uint64_t groups_count, double *times,
                                        int64_t *counts, uint32_t *about) {
  return guarded([&] {
    const auto cells =
        lod::cells_of(*index, {lanes, lanes_count}, begin, end, columns, {groups, groups_count});
    for (const lod::Cell &cell : cells) {
      *times++ = cell.busy;
      *times++ = cell.covered;
      *times++ = cell.time;
      *counts++ = static_cast<int64_t>(cell.number);
      *counts++ = static_cast<int64_t>(cell.begun);
      *counts++ = cell.start;
      for (const uint32_t value : {cell.column, cell.group, cell.row, cell.name, cell.track}) {
        *about++ = value;
      }
    }
    return cells.size();
  });
}
