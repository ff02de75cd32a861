// The interface between the session and its sources (each records one kind of data).
// A source gets the calling thread's log, and the names of the process.
#pragma once

#include <atomic>

#include "spool/process_log.h"

namespace warplens::agent {

// Null until the thread's first event; then perhaps of a recording that has ended.
extern __thread ThreadLog *t_log;

// On a page that the kernel wipes in a fork child, so that even a child that bypasses pthread_atfork (a raw clone) is noticed
// before it touches its parent's spool.
struct Life {
  std::atomic<uint32_t> generation;    // of the recording that runs, 0 = none
  std::atomic<uint32_t> same_process;  // 1, but in a fork child that has not taken notice
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

// Null until the thread's first record of the CPU side; then perhaps of a recording that has ended.
extern __thread Lane *t_lane;

//! As enter(), for lane().
Lane *enter_lane();

//! [MT][HOT] Where the calling thread writes records of the CPU side, or null when nothing is recorded.
inline Lane *lane() {
  Lane *lane = t_lane;
  if (lane == nullptr || lane->generation() != g_life->generation.load(std::memory_order_relaxed))
      [[unlikely]] {
    return enter_lane();
  }
  return lane;
}

//! [MT] The process's log, or null when nothing is recorded.
inline ProcessLog *process_log() {
  ThreadLog *log = thread_log();
  return log != nullptr ? log->process() : nullptr;
}

//! [MT] The process's log, opened now if need be, for what belongs to no thread of the program: the calling one is not entered.
//! Null when nothing is recorded, or nothing can be.
ProcessLog *open_log();

//! The same where the calling thread holds Busy already, as our own threads do.
ProcessLog *own_log();

// What programs hold handles of has its number whether or not something is recorded, and keeps it from one recording to the
// next: these work at any time. In a signal handler that interrupted this thread on a slow path they do nothing (0, false).

//! [MT] The number of a text, of a domain.
uint32_t text_number(std::string_view text);

//! [MT] The same where there may be texts without end and nobody holds the number: it is good in the recording that runs.
uint32_t passing_number(std::string_view text);
uint16_t domain_number(std::string_view name);

//! [MT] A category, the name of a thread; the definition of an object. See Names.
void describe(RecordHead head, const MetaRecord &record);
bool define(uint16_t domain, uint32_t kind, uint64_t id, std::string_view json);
void forget(uint16_t domain, uint32_t kind, uint64_t id);

//! The names themselves, and the clock. The caller holds Busy, and has asked it. Null while another
//! thread of a fork child makes it a separate process.
Names *names();
const ClockParams &process_clock();

}  // namespace warplens::agent
