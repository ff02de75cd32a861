// Reads the tasks of a running event loop: the place of each, and the task that it awaits.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "agent/python/memory/reader.h"
#include "agent/python/memory/snapshot.h"
#include "task_finder.h"

namespace warplens::agent {

enum class TaskState : uint8_t { awaiting, ready, running };

// One task as it was found.
struct SeenTask {
  static constexpr uint32_t kNobody = 0xffffffff;
  uintptr_t address;
  uintptr_t coroutine;
  uintptr_t name;       // object
  uint64_t name_print;  // of its text or number: the object at that place may be another later
  TaskState state;
  uint32_t awaited_by;  // which of the tasks; kNobody
  uint32_t first;       // frame in TaskReader::frames()
  uint32_t count;       // outermost first; 0: they changed while they were read
};

class TaskReader {
 public:
  TaskReader(const PythonRuntime &python, PythonReader &reader)
      : python_(python), reader_(reader), finder_(python) {}

  //! Reads the tasks of the loop that `thread` runs, as `stack` says, which is what it does now. Throws bad_alloc.
  void read(const PythonThread &thread, const PythonStack &stack);

  const std::vector<SeenTask> &tasks() const { return tasks_; }
  const PythonFrame *frames(const SeenTask &task) const { return frames_.data() + task.first; }

  //! What a task is called; whether the program gave that name (not `Task-7`). False where the task is no longer what was read. Throws
  //! bad_alloc.
  bool read_name(const SeenTask &task, std::string &text, bool &is_own) const;

 private:
  // What is called when a future is done, from its type on.
  struct Callback {
    uintptr_t type, fields[8];
  };
  // What a task waits for, and which task waits for it.
  struct Waits {
    uintptr_t future, group, callbacks;
    Callback callback;
  };
  // A task while it is read.
  struct Chain {
    uintptr_t address, coroutine, name;
    std::vector<RawFrame> frames;  // outermost first
    uintptr_t at;                  // what its innermost frame awaits, to be looked at
    Waits waits;
    uint32_t piece, top, next, name_piece, letters_piece, callback_piece;  // of the snapshot
    bool is_wrapped, is_done, runs;
  };
  struct Name {
    uintptr_t type;
    uint64_t size;  // of a text; of a number its size and sign
  };
  struct Letters {
    size_t from, count;
  };
  struct FrameKey {
    uintptr_t code, instruction;
    uint32_t copy;
    bool operator==(const FrameKey &) const = default;
  };
  struct FrameHash {
    size_t operator()(const FrameKey &key) const {
      return (key.code * 0x9e3779b97f4a7c15 ^ key.instruction) * 0x9e3779b97f4a7c15 + key.copy;
    }
  };

  void read_tasks(const uintptr_t *addresses, size_t count, uintptr_t loop);
  void read_chains();
  bool take_frame(Chain &chain, uint32_t owner);
  void go_on(Chain &chain);
  void read_names();
  void drop_changed(const PythonThread &thread, int64_t cpu_before);
  void resolve();
  const PythonFrame *resolve(const RawFrame &raw);
  void find_awaiters();
  uint32_t awaiter_by(const Callback &callback, int hops);
  uint32_t awaiter_in_tuple(uintptr_t tuple, int hops);
  uint32_t awaiter_in_list(uintptr_t list, int hops);
  uint32_t awaiter_of_future(uintptr_t future, int hops);
  Letters letters_of(const Name &name) const;
  static uint64_t print_of(const Name &name, const char *letters, size_t count);
  // Of a tuple, behind its count: from 3.14 on its hash is in between.
  size_t first_item() const { return python_.at.version >= 0x030e ? 1 : 0; }
  size_t head() const { return python_.at.object_type + sizeof(uintptr_t); }

  const PythonRuntime &python_;
  PythonReader &reader_;
  TaskFinder finder_;
  Snapshot snapshot_;
  std::vector<uintptr_t> addresses_;
  std::vector<Chain> chains_;
  size_t chain_count_ = 0;    // of chains_: they keep their memory
  std::vector<Waits> waits_;  // of tasks_
  std::vector<uint32_t> open_;
  std::vector<SeenTask> tasks_;
  std::vector<PythonFrame> frames_;
  std::vector<bool> changed_;
  std::unordered_map<FrameKey, PythonFrame, FrameHash> known_frames_;  // of this read
  std::unordered_map<uintptr_t, uint32_t> indices_;                    // of tasks, by address
  std::unordered_map<uintptr_t, uint32_t> awaiters_;                   // by what they wait for
  std::unordered_map<uintptr_t, uint32_t> known_tuples_;
};

}  // namespace warplens::agent
