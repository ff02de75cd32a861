// Native samples of one CPU: from the kernel's records to stacks in the tree.
#pragma once

#include <linux/perf_event.h>

#include <vector>

#include "agent/unwind/unwinder.h"
#include "warpline/cpu_records.h"

namespace warpline::agent {

// How samples are taken; it stays as it is.
struct SampleForm {
  Backtrace backtrace;
  bool kernel;  // chains of the kernel are in them
  uint64_t interval;
};

class PerfSamples {
 public:
  explicit PerfSamples(const SampleForm &form) : form_(form) {}

  //! Records a sample, learns of mapped files. `log` null: nothing is to be recorded. `prompt`: the thread that was sampled stands
  //! still, because we took its CPU. The caller holds Busy.
  void add(const perf_event_header &record, ProcessLog *log, bool prompt);

  uint64_t lost() const { return lost_; }

 private:
  struct Sample {
    uint64_t ip;
    uint32_t pid;
    uint32_t tid;
    uint64_t time;
    uint32_t cpu;
    const char *chain;
    uint64_t chain_length;
    bool has_registers;
    Registers registers;
    StackView stack;
  };
  void sample(const perf_event_header &record, ProcessLog &log, bool prompt);
  void mapped(const perf_event_header &record);
  size_t find_frames(const Sample &sample, Reached *reached);
  size_t copy_chain(const Sample &sample);
  uint32_t write_kernel(ProcessLog &log, const Sample &sample, uint32_t stack);
  uint32_t write(ProcessLog &log, size_t count);

  static constexpr size_t kMostFrames = 512;

  const SampleForm form_;
  MappingView mappings_;
  std::vector<NativeFrame> frames_ = std::vector<NativeFrame>(kMostFrames);
  uint64_t lost_ = 0;
};

}  // namespace warpline::agent
