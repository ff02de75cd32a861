// What one process writes: its file, strings, threads, names, and the start/end ranges that are open.
#pragma once

#include <pthread.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "file.h"
#include "string_table.h"
#include "thread_log.h"

namespace warpline {

//! Open ranges of a forking thread and its process, carried into the child.
struct Inherited {
  std::vector<EventRecord> stack;
  std::vector<OpenSlot> ranges;
};

class ProcessLog {
 public:
  ProcessLog() = default;
  ProcessLog(const ProcessLog &) = delete;
  ProcessLog &operator=(const ProcessLog &) = delete;

  //! Opens the spool; 0 or an errno.
  [[nodiscard]] int open(const std::string &path, std::string_view json, const ClockParams &clock);

  //! [MT] A log for the calling thread, perhaps one that an ended thread left; nullptr when memory is out.
  ThreadLog *enter_thread();

  //! The thread ends: what is left of its chunk serves the next one.
  void leave_thread(ThreadLog *log);

  //! [MT] Start/end ranges; an id is unique in the process, 0 = not recorded.
  uint64_t start_range(ThreadLog &log, uint16_t domain, const Label &label, uint32_t task = 0,
                       uint64_t parent = 0);
  bool end_range(ThreadLog &log, uint64_t id, uint64_t end, const Change *change = nullptr);

  //! [MT] Writes a record about the process: a thread, domain, category or name.
  void describe(RecordHead head, const MetaRecord &record);

  //! [MT] Writes JSON about an object. `kind` tells apart objects with the same number and is no part of the file; 0: the
  //! definition will not come again and a fork child need not know it. The caller holds the log's Busy.
  bool define(ThreadLog &log, uint16_t domain, uint32_t kind, uint64_t id, std::string_view json);
  void forget(uint16_t domain, uint32_t kind, uint64_t id);

  //! [MT] The number of domain `name`, the same for the same name; 0xffff when there are too many.
  uint16_t domain(std::string_view name);

  uint32_t intern(std::string_view text) { return strings_.intern(text, file_); }
  SpoolFile &file() { return file_; }
  const ClockParams &clock() const { return clock_; }

  //! [FORK] Around a fork: take all locks and copy the calling thread's open ranges; give them back.
  void lock_for_fork();
  void unlock_after_fork();
  Inherited inherited(ThreadLog *log);

  //! [FORK] In the child, once its own spool is open and before anything else is written: takes over the strings, domains
  //! and categories of `parent` (whose mapping is gone) under their numbers.
  void adopt_names(ProcessLog &parent);

  //! [FORK] Then: the ranges that were open; they begin at the fork here. `thread` gets the stack, if it is the one that forked.
  void adopt_ranges(ProcessLog &parent, const Inherited &inherited, ThreadLog *thread, uint64_t fork_ns);

 private:
  static constexpr size_t kSlotsPerChunk = (16384 - sizeof(ChunkHeader)) / sizeof(OpenSlot);
  static constexpr size_t kSlotChunks = 1024;  // some 298,000 open at once

  struct SlotChunk {
    OpenSlot *slots;
    size_t count;
  };
  struct Named {
    RecordHead head{};
    MetaRecord record{};
  };

  struct Object {
    uint64_t id;
    uint32_t kind;
    uint16_t domain;
    bool operator==(const Object &) const = default;
    size_t operator()(const Object &o) const {
      return (o.id ^ static_cast<uint64_t>(o.kind) << 52 ^ static_cast<uint64_t>(o.domain) << 36) *
                 0x9e3779b97f4a7c15u >>
             7;
    }
  };

  void write_description(RecordHead head, const MetaRecord &record);
  OpenSlot *slot(uint32_t index) { return slots_[index / kSlotsPerChunk].slots + index % kSlotsPerChunk; }
  bool add_slots();

  SpoolFile file_;
  StringTable strings_;
  ClockParams clock_{};

  std::mutex threads_mutex_;
  uint32_t next_thread_ = 0;
  ThreadLog *free_threads_ = nullptr;

  std::mutex describe_mutex_;
  MetaRecord *cursor_ = nullptr;
  MetaRecord *end_ = nullptr;
  size_t next_chunk_ = kPage;
  std::unordered_map<std::string, uint16_t> domains_;
  std::unordered_map<uint64_t, Named> categories_;  // by domain and number; written again in a fork child

  std::unordered_map<Object, Named, Object> definitions_;  // the same

  std::mutex slots_mutex_;
  std::vector<SlotChunk> slots_;
  std::vector<uint32_t> free_slots_;
  std::vector<uint32_t> generation_;
};

}  // namespace warpline
