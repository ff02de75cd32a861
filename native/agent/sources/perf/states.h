// Computes when threads ran, waited for a CPU or were blocked, from the kernel's switch records.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "spool/process_log.h"
#include "warplens/cpu_records.h"

namespace warplens::agent {

class PerfStates {
 public:
  //! `tid` is in that state since `time`, or it is not known since when.
  void begin(uint32_t tid, ThreadState state, uint64_t time);

  //! A record of `cpu`'s ring, in order; kept until settle().
  void add(const perf_event_header &record, uint32_t cpu);

  //! Threads that were there before have the names that the system knows them by.
  void name(uint32_t tid, std::string_view name);

  //! No record from before `until` is still to come: what is certain by now is written. `log` null: nothing is to be.
  void settle(uint64_t until, ProcessLog *log);

  //! Recording ends at `time`, or pauses, and what was going on is written up to it.
  void end(uint64_t time, ProcessLog *log);

  //! How many records the kernel had no room for, since this was asked last.
  uint64_t take_lost() { return std::exchange(lost_, 0); }

 private:
  enum class What : uint8_t { in, out_blocked, out_runnable, born, ended };
  struct Happening {
    uint64_t time;
    uint32_t tid;
    uint32_t cpu;
    What what;
  };
  struct Thread {
    ThreadState state;
    uint32_t cpu;
    uint64_t since;
  };
  void apply(const Happening &happening, ProcessLog *log);
  void turn(uint32_t tid, ThreadState state, uint32_t cpu, uint64_t time, ProcessLog *log);
  void write(uint32_t tid, const Thread &thread, uint64_t end, ProcessLog *log);

  void write_names(ProcessLog &log);

  std::vector<Happening> pending_;
  std::unordered_map<uint32_t, std::string> names_;  // that are not written yet
  std::unordered_map<uint32_t, Thread> threads_;
  uint64_t lost_ = 0;
};

}  // namespace warplens::agent
