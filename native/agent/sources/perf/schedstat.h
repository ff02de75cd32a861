// Estimates thread states from the scheduler's counters, where perf events are not available.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "spool/process_log.h"
#include "warplens/cpu_records.h"

namespace warplens::agent {

class SchedStates {
 public:
  static constexpr uint64_t kBetweenLooks = 10'000'000;  // ns; longer where there are many threads
  static constexpr uint64_t kMostBetweenLooks = 1'000'000'000;

  //! Looks at all threads. `log` null: nothing is recorded now. Throws bad_alloc.
  void look(uint64_t now, ProcessLog *log);

  //! Recording ends: what is only in memory is written.
  void end(ProcessLog *log);

 private:
  struct Counts {
    uint64_t ran = 0;     // ns on a CPU
    uint64_t waited = 0;  // ns for one
  };
  struct Thread {
    Counts counts;
    uint64_t seen = 0;  // when
    ThreadState state = ThreadState::blocked;
    uint64_t since = 0;
    uint64_t until = 0;
  };
  bool list();
  static bool read(uint32_t tid, Counts *counts);
  void spread(uint32_t tid, Thread &thread, const Counts &now_counts, uint64_t now, ProcessLog *log);
  void extend(uint32_t tid, Thread &thread, ThreadState state, uint64_t end, ProcessLog *log);
  static void write(uint32_t tid, const Thread &thread, ProcessLog *log);

  std::unordered_map<uint32_t, Thread> threads_;
  std::vector<uint32_t> tids_;
};

}  // namespace warplens::agent
