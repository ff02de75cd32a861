// What a source (one thing that is recorded) gets from the agent: the calling thread's log, and the process's names.
#pragma once

#include <atomic>

#include "spool/process_log.h"

namespace warpline::agent {

// Null until the thread's first event; then perhaps of a recording that has ended.
extern __thread ThreadLog *t_log;

// On a page that the kernel wipes in a fork child, so that even a child that bypasses pthread_atfork (a raw clone) is noticed
// before it touches its parent's spool.
struct Life {
  std::atomic<uint32_t> generation;    // of the recording that runs, 0 = none
  std::atomic<uint32_t> same_process;  // 0 in a fork child that has not taken notice
};
extern Life *g_life;

//! Opens the spool and the thread's log at the first event; null when nothing is to be recorded, or nothing can be (then the
//! event is counted as lost).
ThreadLog *enter();

//! [MT][HOT] The calling thread's log, or null when nothing is recorded.
inline ThreadLog *thread_log() {
  ThreadLog *log = t_log;
  if (log == nullptr || log->generation() != g_life->generation.load(std::memory_order_relaxed))
      [[unlikely]] {
    return enter();
  }
  return log;
}

//! [MT] The process's log, or null when nothing is recorded.
inline ProcessLog *process_log() {
  ThreadLog *log = thread_log();
  return log != nullptr ? log->process() : nullptr;
}

//! [MT] What programs hold handles of has its number whether or not something is recorded: these work at any time. Null in a
//! signal handler that interrupted this thread at a bad moment. The caller holds Busy, and has asked it.
Names &names();

}  // namespace warpline::agent
