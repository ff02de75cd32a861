// Joins consecutive equal samples of one thread into one record.
#pragma once

#include <cstdint>

#include "spool/process_log.h"
#include "warplens/cpu_records.h"

namespace warplens::agent {

inline constexpr uint32_t kNoOpcode = 0xffffffff;

// What a tick found.
struct PythonSample {
  uint32_t stack = 0;  // 0 = nothing
  uint32_t task = 0;
  uint32_t opcode = kNoOpcode;
  uint8_t flags = 0;

  bool operator==(const PythonSample &) const = default;
};

class SampleRun {
 public:
  //! The thread was found so at `time`; ticks are `interval` apart. What was before is written where it was something else, or has
  //! gone on for long. The caller holds Busy.
  void add(ProcessLog &log, uint32_t tid, const PythonSample &sample, uint64_t time, uint64_t interval);

  //! Writes what there is.
  void end(ProcessLog &log, uint32_t tid);

  //! Forgets it: the recording is another.
  void drop() { count_ = 0; }

 private:
  PythonSample sample_;
  uint64_t start_ = 0;
  uint64_t last_ = 0;
  uint64_t interval_ = 0;
  uint32_t count_ = 0;
};

}  // namespace warplens::agent
