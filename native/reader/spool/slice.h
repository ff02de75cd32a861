// Turns one slice of a process's events into Arrow columns, in order of start.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "blobs.h"
#include "columns.h"
#include "events.h"
#include "nest.h"
#include "reader/arrow.h"
#include "reader/clock.h"
#include "reader/following/waiting.h"
#include "reader/ops/ops.h"
#include "reader/sort.h"
#include "tasks.h"

namespace warplens::reader {

class Slicer {
 public:
  Slicer(Events &events, const BlobReader &blobs, int64_t process, int64_t thread_base, int64_t range_base)
      : events_(events),
        blobs_(blobs),
        process_(process),
        thread_base_(thread_base),
        range_base_(range_base) {}

  // `lookup[id]` is the position of string `id` in the caller's list, or kNone where it was lost.
  void set_strings(const uint32_t *lookup, uint64_t count, uint64_t strings) {
    lookup_.assign(lookup, lookup + count);
    strings_ = strings;
  }
  void set_clock(ClockMap clock) { clock_ = std::move(clock); }

  // Range ids that the makers of tasks are; keys of tasks are counted from the same base as ranges.
  void set_makers(const uint32_t *tasks, const uint64_t *makers, uint64_t count);

  enum Table : uint32_t { kRanges, kMarks, kSamples, kOperations, kTables, kOps = kTables };
  void build(const uint8_t *base, uint64_t slice);
  // After `build`, while the process goes on. Before which ranges of the slice others belong that have not ended:
  const std::vector<uint64_t> &splits() const { return splits_; }
  // Makes columns of those that waited for their ends, and have them by now; returns how many there are.
  uint64_t build_late();
  size_t waiting() const { return waiting_.size(); }
  // What cannot be, if each open range was seen in time: only reading the spool from its beginning gives the right rows.
  uint64_t surprises() const { return surprises_; }
  // The columns of a table; of texts, domains and categories: codes, and the numbers of those that are used.
  ArrowColumns columns(uint32_t table) const;
  // The extended payloads of a table's rows: see BlobRefs.
  ArrowColumns payloads(uint32_t table) const;
  uint64_t rows(uint32_t table) const;

 private:
  // What few rows have.
  struct Extra {
    uint64_t id;
    uint64_t parent;
    uint32_t task;
    uint32_t end_thread;
  };
  struct Row {
    int64_t start;
    int64_t end;
    const uint8_t *record;
    uint32_t thread;
    uint32_t nest;
    uint32_t extra;  // into extras_; 0: nothing
    bool unfinished;
    bool waits;  // its end is not known yet
  };
  struct LateRow {
    Row row;
    int64_t id;
    Place place;
  };

  void gather(const uint8_t *base, uint64_t slice);
  void add_row(const uint8_t *record, uint32_t thread, uint32_t nest, uint32_t extra, bool unfinished,
               bool waits = false);
  void add_event(const uint8_t *record, const uint8_t *segment_end, uint32_t thread, uint32_t nest,
                 uint32_t task);
  void add_open(uint32_t index, bool waits);
  bool in_file(const Row &row) const;
  void settle(const uint8_t *base);
  void check_parents();
  void wait(const Row &row);
  Waiting looks(const Row &row) const;
  uint32_t extra_of(uint32_t task);
  void sort();
  bool before(uint32_t a, uint32_t b) const;
  void emit_instant(InstantColumns &out, size_t at, const Row &row);
  void emit_event(EventColumns &out, size_t at, const Row &row, int64_t id);
  void set_message(EventColumns &out, size_t at, const uint8_t *record);
  void emit_range(size_t at, const Row &row);
  void emit_placed(size_t at, const Row &row, int64_t id, const Place &place, bool late = false);
  void emit_op(size_t at, const Row &row, int64_t id, bool late);
  uint32_t text_of(uint32_t number) const {
    return number != 0 && number < lookup_.size() ? lookup_[number] : kNone;
  }
  void emit_sample(size_t at, const Row &row);
  void emit_operation(size_t at, const Row &row);
  Place place(const Row &row, int64_t id, bool start_end);
  int64_t explicit_parent(uint64_t parent, int64_t id);
  int64_t maker_of(uint32_t task, int64_t id) const;
  uint32_t nest_of(uint32_t thread);

  Events &events_;
  const BlobReader &blobs_;
  const uint8_t *base_ = nullptr;
  int64_t process_, thread_base_, range_base_;
  std::vector<uint32_t> lookup_;
  uint64_t strings_ = 0;
  ClockMap clock_;
  std::unordered_map<uint32_t, uint64_t> makers_;
  std::vector<Row> rows_;
  std::vector<Extra> extras_;
  std::vector<uint32_t> order_;
  SortScratch scratch_;
  Refilled<RangeColumns> ranges_;
  Refilled<EventColumns> marks_;
  Refilled<SampleColumns> samples_;
  Refilled<OperationColumns> operations_;
  Refilled<OpColumns> ops_;
  OpPasses passes_;
  std::unordered_map<uint32_t, uint32_t> nest_numbers_;
  std::vector<Nest> nests_;
  TaskNests tasks_;
  ProcessLanes lanes_;
  int64_t next_range_ = 0;
  int64_t next_mark_ = 0;
  struct {
    int64_t start;
    uint32_t thread;
    uint8_t type;
  } last_wait_{INT64_MIN, 0, 0};
  WaitingRanges waiting_;
  std::vector<LateRow> late_;
  std::vector<uint64_t> splits_;
  uint64_t surprises_ = 0;
};

}  // namespace warplens::reader
