// What a source (one thing that is recorded) gets from the agent: the calling thread's log, and the process's.
#pragma once

#include <atomic>

#include "spool/process_log.h"

namespace warpline::agent {

// Both are null while nothing can be recorded: before the first event, or after the agent turned itself off.
extern __thread ThreadLog *t_log;
extern ProcessLog *g_process;
// On a page that the kernel wipes in a fork child, so that even a child that bypasses pthread_atfork (a raw clone) is noticed
// before it touches its parent's spool.
extern const std::atomic<uint32_t> *g_same_process;

//! Opens the spool and the thread's log at the first event; null when the agent is off (the event is counted as lost).
ThreadLog *enter();

//! [MT][HOT] The calling thread's log, or null when nothing can be recorded.
inline ThreadLog *thread_log() {
  ThreadLog *log = t_log;
  if (log == nullptr || g_same_process->load(std::memory_order_relaxed) == 0) [[unlikely]] {
    return enter();
  }
  return log;
}

//! [MT] The process's log, or null when nothing can be recorded.
inline ProcessLog *process_log() {
  return thread_log() != nullptr ? g_process : nullptr;
}

}  // namespace warpline::agent
