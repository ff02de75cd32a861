// Samples the tasks of one thread's event loop, running and awaiting; written as runs.
#pragma once

#include <unordered_map>
#include <vector>

#include "task_reader.h"

namespace warplens::agent {

// Tasks change only when their thread runs, so they are read when it ran since they were read last: as often as it may cost.
class TaskSamples {
 public:
  TaskSamples(TaskReader &tasks, PythonReader &reader) : tasks_(tasks), reader_(reader) {}

  //! The thread ran since the last tick.
  void set_changed() { is_changed_ = true; }

  //! The thread's stack was without a loop. Whether it has been so often enough to be believed: a stack may be read in the middle of a
  //! change, and the next tick reads it again.
  bool has_ended();

  //! Whether the next tick reads the tasks, if it gets a stack.
  bool is_due() const;

  //! A tick at `now`. `stack`: what the thread does now; null: it was not read. The caller holds Busy. Throws bad_alloc.
  void tick(ProcessLog &log, const PythonThread &thread, const PythonStack *stack, uint64_t now,
            uint64_t interval);

  //! Writes what there is.
  void end(ProcessLog &log, uint32_t tid);

 private:
  struct Known {
    uintptr_t coroutine;
    uint64_t name_print;
    uint32_t number;  // in the process
    uint32_t name;
    uint32_t label;
    uint64_t stack_print;  // of what its stack was made of
    uint32_t stack;
    uint8_t flags;
    uint64_t start;
    uint64_t since;  // tick
    uint32_t seen;   // in which look
  };

  void look(ProcessLog &log, const PythonThread &thread, const PythonStack &stack, uint64_t now);
  Known *know(ProcessLog &log, uint32_t tid, const SeenTask &task, uint32_t code, uint64_t now);
  uint32_t node(ProcessLog &log, const PythonStack &stack, uint32_t task, int hops);
  bool is_running(const SeenTask &task, const PythonStack &stack) const;
  void write(ProcessLog &log, uint32_t tid, Known &known, uint64_t until);

  TaskReader &tasks_;
  PythonReader &reader_;
  std::unordered_map<uintptr_t, Known> known_;  // by address
  std::vector<uint32_t> nodes_;
  std::vector<Known *> seen_;
  std::vector<bool> awaited_;
  uint32_t looks_ = 0;
  uint64_t ticks_ = 0;
  uint64_t last_ = 0;     // tick
  uint64_t written_ = 0;  // when all were
  uint64_t interval_ = 0;
  uint64_t next_look_ = 0;     // ns of CLOCK_MONOTONIC
  uint32_t without_loop_ = 0;  // reads in a row
  bool is_changed_ = true;
};

}  // namespace warplens::agent
