// Samples all Python threads of the process, tick by tick.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/python/memory/reader.h"
#include "agent/python/memory/runs.h"
#include "task_samples.h"

namespace warplens::agent {

class PythonSampling {
 public:
  explicit PythonSampling(const PythonRuntime &python)
      : python_(python), reader_(python), task_reader_(python, reader_) {}

  //! From now on samples have the opcode, too.
  void want_opcodes() { reader_.want_opcodes(); }

  //! Looks at every thread. Throws bad_alloc.
  void tick(ProcessLog &log, uint64_t interval);

  //! Writes what is only in memory.
  void flush(ProcessLog &log);

  //! Whether threads were found, and a stack of one of them made sense.
  bool makes_sense() const { return made_sense_; }
  PythonReader &reader() { return reader_; }

 private:
  struct Track {
    int64_t cpu = -1;      // the thread's own clock when it was last read; -1: it was not
    uint32_t still = 0;    // ticks since it last moved
    uint32_t unnamed = 0;  // ticks until its name is read
    PythonSample sample;
    SampleRun run;
  };
  struct Lock {
    uintptr_t interpreter;
    uintptr_t gil;
    int32_t locked;
    uintptr_t holder;
    uint64_t changes;  // of hands
    uint64_t before;   // those at the last tick
  };

  void refresh(ProcessLog &log);
  bool read_heads();
  const Lock *lock_of(const PythonThread &thread) const;
  bool may_rest(const Lock *lock, const PythonThread &thread, const Track &track, size_t i) const;
  void look(ProcessLog &log, size_t i, uint64_t now, uint64_t interval);
  TaskSamples *tasks_of(const PythonThread &thread) const;
  void look_at_tasks(ProcessLog &log, const PythonThread &thread, bool is_read, uint64_t now,
                     uint64_t interval);
  void name_thread(ProcessLog &log, const PythonThread &thread, Track &track);
  void end_tasks(ProcessLog &log, const PythonThread &thread);

  const PythonRuntime &python_;
  PythonReader reader_;
  TaskReader task_reader_;
  std::unordered_map<uintptr_t, std::unique_ptr<TaskSamples>> loops_;  // by the thread that runs one
  std::vector<PythonThread> threads_;
  std::unordered_map<uint32_t, std::string> names_;  // that Python gave, by the system's number of the thread
  std::vector<Track> tracks_;                        // of threads_
  std::vector<Lock> locks_;                          // of interpreters
  std::vector<uintptr_t> heads_;                     // the first thread state of each
  std::vector<uintptr_t> heads_now_;
  std::vector<Piece> pieces_;
  PythonStack stack_;
  uintptr_t first_ = 0;  // interpreter
  uint32_t until_refresh_ = 0;
  size_t ticks_ = 0;
  uint32_t generation_ = 0;
  bool made_sense_ = false;
};

}  // namespace warplens::agent
