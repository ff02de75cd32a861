// The log of one process: its file, strings, threads, names, and open start/end ranges.
#pragma once

#include <pthread.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "file.h"
#include "lane.h"
#include "names.h"
#include "spool/wide/wide_log.h"
#include "thread_log.h"

namespace warplens {

//! Open ranges of a forking thread and its process, carried into the child.
struct Inherited {
  std::vector<EventRecord> stack;
  std::vector<OpenSlot> ranges;
};

class ProcessLog {
 public:
  //! `generation` tells its threads' logs from those of other recordings; ids of its start/end ranges lie above `ranges_before`.
  explicit ProcessLog(Names &names, uint32_t generation = 1, uint32_t ranges_before = 0)
      : generation_(generation), names_(names), last_turn_(ranges_before), first_turn_(ranges_before) {}
  ProcessLog(const ProcessLog &) = delete;
  ProcessLog &operator=(const ProcessLog &) = delete;

  //! Opens the spool, within the limits of `control`, and writes all names into it; 0 or what SpoolFile::create says. Without
  //! `control` everything is recorded at any time.
  [[nodiscard]] int open(const std::string &path, std::string_view json, const ClockParams &clock,
                         ControlPage *control = nullptr);

  //! [MT] Ends the recording: the file is complete, and whatever still comes goes nowhere.
  void finish();

  //! [MT] A log for the calling thread: perhaps one that an ended thread left, or `spare`, which no thread uses any more.
  //! nullptr when memory is out.
  ThreadLog *enter_thread(ThreadLog *spare = nullptr);

  //! The thread ends: what is left of its chunk serves the next one.
  void leave_thread(ThreadLog *log);

  //! [MT] Where the calling thread writes its wide records; give it back when the thread ends. Null when memory is out. The
  //! caller holds Busy.
  Lane *enter_lane();
  void leave_lane(Lane *lane);

  //! [MT] Start/end ranges; an id is unique in the process, 0 = not recorded. `start`: 0 = now.
  uint64_t start_range(ThreadLog &log, uint16_t domain, const Label &label, uint32_t task = 0,
                       uint64_t parent = 0, uint64_t start = 0);
  bool end_range(ThreadLog &log, uint64_t id, uint64_t end, const Change *change = nullptr);

  //! [MT] When an open start/end range began; 0 when it is not open.
  uint64_t begin_of(ThreadLog &log, uint64_t id);

  //! [MT] An open start/end range is somebody's parent: readers must find it by its id. The caller holds Busy.
  void name_as_parent(uint64_t id);

  //! [MT] Names and definitions; see Names. The caller holds Busy.
  void describe(RecordHead head, const MetaRecord &record) { names_.describe(head, record); }
  bool define(ThreadLog &log, uint16_t domain, uint32_t kind, uint64_t id, std::string_view json);
  void forget(uint16_t domain, uint32_t kind, uint64_t id) { names_.forget(domain, kind, id); }
  uint16_t domain(std::string_view name) { return names_.domain(name); }
  uint32_t intern(std::string_view text) { return names_.intern(text); }
  uint32_t passing(std::string_view text) { return names_.passing(text); }
  std::string_view text(uint32_t number) const { return names_.text(number); }

  uint32_t generation() const { return generation_; }
  uint32_t last_turn() const { return last_turn_; }
  SpoolFile &file() { return file_; }
  WideLog &wide() { return wide_; }
  const ClockParams &clock() const { return clock_; }
  ControlPage *control() const { return control_; }

  //! [FORK] Before a fork: the open ranges of the process, and of the calling thread.
  Inherited inherited(ThreadLog *log);

  //! [FORK] In the child: the ranges that were open; they begin at the fork here. `thread` gets the stack, if it is the one that
  //! forked.
  void adopt_ranges(const Inherited &inherited, ThreadLog *thread, uint64_t fork_ns);

 private:
  static constexpr size_t kSlotsPerChunk = (16384 - sizeof(ChunkHeader)) / sizeof(OpenSlot);
  static constexpr size_t kSlotChunks = 1024;  // some 298,000 open at once

  struct SlotChunk {
    OpenSlot *slots;
    size_t count;
  };
  OpenSlot *slot(uint32_t index) { return slots_[index / kSlotsPerChunk].slots + index % kSlotsPerChunk; }
  OpenSlot *open_slot(uint64_t id);
  void keep_closed(uint32_t index, uint8_t flags, uint64_t end);
  void mark_as_parent(uint64_t id);
  bool add_slots();

  const uint32_t generation_;
  Names &names_;
  SpoolFile file_;
  NameWriter writer_{file_};
  WideLog wide_{file_};
  ClockParams clock_{};
  ControlPage *control_ = nullptr;

  std::mutex threads_mutex_;
  uint32_t next_thread_ = 0;
  ThreadLog *free_threads_ = nullptr;
  Lane *free_lanes_ = nullptr;

  std::mutex slots_mutex_;
  std::vector<SlotChunk> slots_;
  std::vector<uint32_t> free_slots_;
  uint32_t kept_slots_[16] = {};  // closed, but not written: their numbers + 1
  std::vector<uint32_t> turns_;   // how often each slot was taken, counted over all recordings of the process
  std::vector<bool> is_parent_;   // of the range in each slot
  uint32_t last_turn_;
  const uint32_t first_turn_;
};

}  // namespace warplens
