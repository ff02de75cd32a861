// Converts the kernel's samples of one CPU to stacks in the tree.
#pragma once

#include <linux/perf_event.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "agent/python/memory/mixed.h"
#include "agent/unwind/unwinder.h"
#include "kernel.h"
#include "warplens/cpu_records.h"

namespace warplens::agent {

// How samples are taken; it stays as it is.
struct SampleForm {
  Backtrace backtrace;
  uint64_t interval;
  bool has_kernel;  // its addresses are in them
};

// Reads Python for the samples of some CPUs: what it learns of code is too large for each of many.
struct SampledPython {
  std::mutex mutex;  // held by the thread that uses the reader
  std::unique_ptr<PythonReader> reader;
};

//! The process's CPython, once it was found and can be read. To look for it takes the loader's lock: samples do not wait for that.
inline std::atomic<const PythonRuntime *> g_sampled_python{nullptr};

class PerfSamples {
 public:
  PerfSamples(const SampleForm &form, SampledPython &python) : form_(form), python_(python) {}

  //! Records a sample, learns of mapped files. `log` null: nothing is to be recorded. `prompt`: the thread that was sampled stands
  //! still, because we took its CPU. The caller holds Busy.
  void add(const perf_event_header &record, ProcessLog *log, bool prompt);

  void lose() { ++lost_; }
  uint64_t take_lost() { return std::exchange(lost_, 0); }

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
  size_t find_kernel(const Sample &sample, bool *cut);
  size_t copy_chain(const Sample &sample);
  bool find_eval();
  bool read_python(const Sample &sample, size_t count, bool whole);
  uint32_t write(ProcessLog &log, const Sample &sample, size_t count, Reached reached, bool *late);
  uint32_t write_kernel(ProcessLog &log, uint32_t stack, size_t count);

  static constexpr size_t kMostFrames = 512;

  const SampleForm form_;
  SampledPython &python_;
  MappingView mappings_;
  EvalCode eval_;
  uint64_t eval_version_ = 0;  // of the mappings, where it was looked for in vain
  PythonStack python_stack_;
  std::vector<NativeFrame> frames_ = std::vector<NativeFrame>(kMostFrames);
  uint64_t kernel_[kMostKernelFrames];  // innermost first
  uint64_t lost_ = 0;
};

}  // namespace warplens::agent
