// Begins and ends the sources of the CPU side: at the tap, at forks, at the end of the process.
#pragma once

#include "spool/process_log.h"
#include "warplens/cpu_records.h"
#include "warplens/tap.h"

namespace warplens::agent {

// A source. Each function may be null; none is called while the process is in the middle of a fork.
struct CpuSource {
  uint32_t flags;  // kCpu…: one of them is asked for, or it is left alone
  // Before main, in the program's first thread. `tap` lives as long as the process.
  void (*begin)(const CpuSettings &settings, WarplensTap &tap);
  // [FORK] In the child of a fork, where only the calling thread is left: no locks, no memory. Then at once, in the handler.
  void (*abandon)();
  void (*begin_child)();
  // The process ends in an orderly way; other threads may still run. What is only in memory is written.
  void (*end)();
  // [MT] A window has opened or closed.
  void (*windows_changed)() = nullptr;
  // [MT] A program that runs already begins to record itself, or ends that. Only sources that need no stub can do it.
  void (*attach)(const CpuSettings &settings) = nullptr;
  void (*detach)() = nullptr;
};

//! The sources, in the order in which they begin. A file under sources/ defines each.
extern const CpuSource kOsCallSource;
extern const CpuSource kPythonSource;
extern const CpuSource kPythonSampler;
extern const CpuSource kPerfSource;
extern const CpuSource kTorchSource;

//! Begins those sources of a process that is watched from outside that can be had there. Once, instead of all others.
void begin_outside(const CpuSettings &settings);

//! The requested CPU recording; all zero if nothing of the CPU side is recorded.
const CpuSettings &cpu_settings();

//! [MT] The process's log for what our own threads write, begun now if need be; null when nothing is to be recorded now, because no
//! window is open or there is no space. Cheap where a window is closed.
ProcessLog *cpu_log();

//! [MT] Whether the program put itself into a sandbox, where any system call of ours could end it.
bool is_cpu_over();

//! [MT] Writes a notice. The caller does not hold Busy.
void cpu_notice(CpuNotice what, int64_t value, std::string_view text = {});
//! The same from a thread of ours, or where Busy is held.
void own_cpu_notice(CpuNotice what, int64_t value, std::string_view text = {});

//! Begins an agent thread: all signals blocked, a small stack, marked as ours (t_busy is set for good: nothing it calls is
//! recorded), named `name`. False where it cannot be.
bool start_own_thread(const char *name, void (*body)(void *), void *argument);

//! [MT] Whether `tid` is a thread that start_own_thread() began.
bool is_own_thread(uint32_t tid);

}  // namespace warplens::agent
