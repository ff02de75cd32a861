// Samples all Python threads once a tick.
// A thread whose CPU clock stood still did not run, so its stack is the last one; others are read.
#include "sampling.h"

#include "agent/python/memory/handles.h"
#include "agent/python/memory/interpreters.h"
#include "agent/python/memory/texts.h"
#include "agent/source.h"
#include "attributes.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kRefresh = 64;  // ticks: threads may have come or gone unnoticed
constexpr uint32_t kNamedByPython = 1;
constexpr uint32_t kMostInterpreters = 64;
constexpr uint32_t kStill = 16;  // ticks: a thread that stood still for so long is looked at …
constexpr size_t kRarely = 8;    // … once in this number of times

}  // namespace

// Who there is now. What was known of threads that are still there stays.
void PythonSampling::refresh(ProcessLog &log) {
  std::vector<PythonThread> before = threads_;
  if (!reader_.find_threads(threads_)) {
    until_refresh_ = 0;
    if (threads_.empty()) {
      threads_ = std::move(before);
      flush(log);
      threads_.clear();
      tracks_.clear();
      return;
    }
  } else {
    until_refresh_ = kRefresh;
  }
  std::vector<Track> tracks(threads_.size());
  std::vector<bool> kept(before.size());
  for (size_t i = 0; i < threads_.size(); ++i) {
    for (size_t k = 0; k < before.size(); ++k) {
      if (!kept[k] && before[k].address == threads_[i].address && before[k].tid == threads_[i].tid) {
        tracks[i] = tracks_[k];
        kept[k] = true;
        break;
      }
    }
  }
  for (size_t k = 0; k < before.size(); ++k) {
    if (!kept[k]) {
      tracks_[k].run.end(log, before[k].tid);
      end_tasks(log, before[k]);
    }
  }
  tracks_ = std::move(tracks);
  PythonInterpreter interpreters[kMostInterpreters];
  uint32_t count = python_interpreters(python_, interpreters, kMostInterpreters);
  locks_.clear();
  heads_.clear();
  first_ = count != 0 ? interpreters[0].address : 0;
  for (uint32_t i = 0; i < count; ++i) {
    locks_.push_back({interpreters[i].address, interpreters[i].gil, 0, 0, 0, 0});
    heads_.push_back(interpreters[i].threads);
  }
}

// The locks, and whether there are new threads: they are put first.
bool PythonSampling::read_heads() {
  uintptr_t first = 0;
  heads_now_.assign(heads_.size(), 0);
  pieces_.clear();
  pieces_.push_back({&first, python_.address + python_.at.runtime_interpreters, sizeof(first)});
  for (size_t i = 0; i < locks_.size(); ++i) {
    Lock &lock = locks_[i];
    lock.locked = 0;
    lock.before = lock.changes;
    pieces_.push_back({&heads_now_[i], lock.interpreter + python_.at.interpreter_threads, sizeof(uintptr_t)});
    if (lock.gil != 0) {
      pieces_.push_back({&lock.locked, lock.gil + python_.at.gil_locked, sizeof(lock.locked)});
      pieces_.push_back({&lock.holder, lock.gil + python_.at.gil_holder, sizeof(lock.holder)});
      if (python_.at.gil_cond != kNoOffset) {  // it stands before that
        pieces_.push_back(
            {&lock.changes, lock.gil + python_.at.gil_cond - sizeof(lock.changes), sizeof(lock.changes)});
      }
    }
  }
  return copy_pieces(pieces_.data(), pieces_.size()) == pieces_.size() && first == first_ &&
         heads_now_ == heads_ && first != 0;
}

const PythonSampling::Lock *PythonSampling::lock_of(const PythonThread &thread) const {
  for (const Lock &lock : locks_) {
    if (lock.interpreter == thread.interpreter) {
      return &lock;
    }
  }
  return nullptr;
}

// A thread that has not had the lock since the last tick has the stack it had. Its clock, which
// costs more than all else here, only shows whether it runs native code. For a thread that stands
// still for long, the clock is read less often.
bool PythonSampling::may_rest(const Lock *lock, const PythonThread &thread, const Track &track,
                              size_t i) const {
  return track.still >= kStill && (ticks_ + i) % kRarely != 0 && lock != nullptr && lock->gil != 0 &&
         python_.at.gil_cond != kNoOffset && !python_.free_threaded && lock->changes == lock->before &&
         lock->holder != thread.address;
}

TaskSamples *PythonSampling::tasks_of(const PythonThread &thread) const {
  auto found = loops_.find(thread.address);
  return found != loops_.end() ? found->second.get() : nullptr;
}

// The thread's own stack, if it was read now, says whether it runs a loop, and which task of it.
void PythonSampling::look_at_tasks(ProcessLog &log, const PythonThread &thread, bool is_read, uint64_t now,
                                   uint64_t interval) {
  const bool has_loop = is_read && stack_.loop != 0 && python_.at.generator_state != kNoOffset;
  if (has_loop && tasks_of(thread) == nullptr) {
    loops_[thread.address] = std::make_unique<TaskSamples>(task_reader_, reader_);
  }
  TaskSamples *tasks = tasks_of(thread);
  if (tasks == nullptr) {
    return;
  }
  if (is_read && !has_loop && !stack_.is_cut && tasks->has_ended()) {
    end_tasks(log, thread);
    return;
  }
  tasks->tick(log, thread, has_loop ? &stack_ : nullptr, now, interval);
}

void PythonSampling::end_tasks(ProcessLog &log, const PythonThread &thread) {
  if (TaskSamples *tasks = tasks_of(thread)) {
    tasks->end(log, thread.tid);
    loops_.erase(thread.address);
  }
}

// Before 3.14 only the Thread object has the name, later the system has its first 15 bytes. A program may rename a thread, so the name is read again now and then.
void PythonSampling::name_thread(ProcessLog &log, const PythonThread &thread, Track &track) {
  if (stack_.thread == 0 || track.unnamed-- != 0) {
    return;
  }
  track.unnamed = kRefresh;
  std::string name;
  const uintptr_t text = read_attribute(python_, stack_.thread, "_name");
  if (text == 0 || !read_text(python_, text, name) || name.empty() || names_[thread.tid] == name) {
    return;
  }
  MetaRecord record{};
  record.tid = thread.tid;
  record.category = kNamedByPython;
  record.start = now_ns(log.clock());
  log.describe({RecordType::thread_name, 0, 0, log.intern(name)}, record);
  names_[thread.tid] = std::move(name);
}

void PythonSampling::look(ProcessLog &log, size_t i, uint64_t now, uint64_t interval) {
  PythonThread &thread = threads_[i];
  Track &track = tracks_[i];
  const Lock *lock = lock_of(thread);
  // Before its frames: what runs in between is read again at the next tick.
  int64_t cpu = may_rest(lock, thread, track, i) ? track.cpu : thread_cpu_ns(thread.tid);
  uint8_t flags = lock != nullptr && lock->locked == 1 && lock->holder == thread.address ? kSampleGil : 0;
  const bool has_run = cpu != track.cpu || cpu < 0;
  TaskSamples *tasks = tasks_of(thread);
  if (tasks != nullptr && has_run) {
    tasks->set_changed();
  }
  const bool is_read = has_run || (tasks != nullptr && tasks->is_due());
  if (is_read && (cpu < 0 || !reader_.read(thread, stack_))) {
    if (has_run) {
      track.cpu = -1;
      track.run.end(log, thread.tid);
      until_refresh_ = 0;  // it may be gone
    }
    return;
  }
  if (has_run) {
    bool is_first = track.cpu < 0;
    track.cpu = cpu;
    track.still = 0;
    made_sense_ = made_sense_ || !stack_.frames.empty();
    track.sample.stack = reader_.node(log, stack_);
    name_thread(log, thread, track);
    track.sample.opcode = stack_.opcode;
    track.sample.task = stack_.task.empty() ? 0 : log.intern(stack_.task);
    flags |= is_first ? 0 : kSampleOnCpu;
    flags |= stack_.is_cut ? kSampleCut : 0;
    flags |= stack_.handles_exception ? kSampleException : 0;
  } else {
    ++track.still;
    flags |= track.sample.flags & (kSampleCut | kSampleException);
  }
  track.sample.flags = flags;
  track.run.add(log, thread.tid, track.sample, now, interval);
  look_at_tasks(log, thread, is_read, now, interval);
}

void PythonSampling::tick(ProcessLog &log, uint64_t interval) {
  if (generation_ != log.generation()) {
    generation_ = log.generation();
    for (Track &track : tracks_) {
      track.run.drop();
      track.cpu = -1;
      track.still = 0;
    }
    loops_.clear();
  }
  if (until_refresh_ == 0 || !read_heads()) {
    refresh(log);
    read_heads();
  } else {
    --until_refresh_;
  }
  ++ticks_;
  uint64_t now = now_ns(log.clock());
  for (size_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].tid != 0) {
      look(log, i, now, interval);
    }
  }
}

void PythonSampling::flush(ProcessLog &log) {
  for (size_t i = 0; i < tracks_.size() && i < threads_.size(); ++i) {
    tracks_[i].run.end(log, threads_[i].tid);
    end_tasks(log, threads_[i]);
  }
}

}  // namespace warplens::agent
