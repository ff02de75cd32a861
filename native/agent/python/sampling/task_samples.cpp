// Builds and writes stacks of tasks.
// A task's stack stands on that of the task that awaits it; a marker frame begins each.
#include "task_samples.h"

#include <time.h>

#include <algorithm>
#include <string>

#include "agent/source.h"

namespace warplens::agent {
namespace {

constexpr uint64_t kShare = 50;               // of the time, this part may go into looking at tasks
constexpr uint64_t kLongest = 1'000'000'000;  // of a run: a process may end at any time, and nobody tells
constexpr uint32_t kWithoutLoop = 8;
constexpr int kMostHops = 32;           // tasks that await one another
constexpr uint32_t kOpen = 0xffffffff;  // its node is being made

uint32_t g_number = 0;  // of the last task; there is one thread of ours

}  // namespace

bool TaskSamples::is_due() const {
  return is_changed_ && clock_ns(CLOCK_MONOTONIC) >= next_look_;
}

bool TaskSamples::has_ended() {
  is_changed_ = true;
  next_look_ = 0;
  return ++without_loop_ == kWithoutLoop;
}

void TaskSamples::write(ProcessLog &log, uint32_t tid, Known &known, uint64_t until) {
  const auto count = static_cast<uint32_t>(ticks_ - known.since);
  if (count == 0 || known.stack == 0) {
    return;
  }
  CpuSampleRecord record{};
  record.head = {RecordType::cpu_sample, known.flags, static_cast<uint16_t>(SampleKind::task), known.name};
  record.start = known.start;
  record.end = until;
  record.tid = tid;
  record.stack = known.stack;
  record.count = count;
  record.cpu = known.number;
  record.interval = interval_;
  WideLog::Writer(log.wide()).append(record, known.start);
  known.start = until;
  known.since = ticks_;
}

void TaskSamples::end(ProcessLog &log, uint32_t tid) {
  const uint64_t until = std::max(std::min(last_ + interval_, now_ns(log.clock())), last_);
  for (auto &[address, known] : known_) {
    write(log, tid, known, until);
  }
  known_.clear();
  is_changed_ = true;
}

bool TaskSamples::is_running(const SeenTask &task, const PythonStack &stack) const {
  return task.coroutine == stack.coroutine && stack.coroutine_from < stack.frames.size();
}

// What was known of the task; anew where another has its place. Null where it is no longer what was read.
TaskSamples::Known *TaskSamples::know(ProcessLog &log, uint32_t tid, const SeenTask &task, uint32_t code,
                                      uint64_t now) {
  auto at = known_.find(task.address);
  if (at != known_.end() && at->second.coroutine == task.coroutine &&
      at->second.name_print == task.name_print) {
    return &at->second;
  }
  bool is_own = false;
  std::string name;
  if (!tasks_.read_name(task, name, is_own)) {
    return nullptr;
  }
  if (at != known_.end()) {
    write(log, tid, at->second, now);
  }
  Known &known = known_[task.address] = {};
  known.coroutine = task.coroutine;
  known.name_print = task.name_print;
  known.number = ++g_number;
  known.name = name.empty() ? 0 : log.intern(name);
  known.label = log.intern("task " + (is_own ? name : reader_.codes().code(code).name_text));
  known.since = ticks_;
  return &known;
}

uint32_t TaskSamples::node(ProcessLog &log, const PythonStack &stack, uint32_t number, int hops) {
  const SeenTask &task = tasks_.tasks()[number];
  if (nodes_[number] != 0) {
    return nodes_[number] == kOpen ? 0 : nodes_[number];
  }
  nodes_[number] = kOpen;
  const bool runs = is_running(task, stack);
  const PythonFrame *frames = runs ? stack.frames.data() + stack.coroutine_from : tasks_.frames(task);
  const size_t count = runs ? stack.frames.size() - stack.coroutine_from : task.count;
  uint32_t at = 0;
  if (task.awaited_by != SeenTask::kNobody && hops < kMostHops && seen_[task.awaited_by] != nullptr) {
    at = node(log, stack, task.awaited_by, hops + 1);
  }
  Known &known = *seen_[number];
  uint64_t print = at + 1;
  for (size_t i = 0; i < count; ++i) {
    print = (print ^ (uint64_t{frames[i].code} << 32 | static_cast<uint32_t>(frames[i].offset))) *
            0x9e3779b97f4a7c15;
    print ^= print >> 29;
  }
  if (known.stack_print == print && known.stack != 0) {
    return nodes_[number] = known.stack;
  }
  known.stack_print = print;
  Frame mark;
  mark.kind = FrameKind::task;
  mark.name = known.label;
  at = stack_node(log, at, mark);
  for (size_t i = 0; i < count && at != 0; ++i) {
    at = stack_node(log, at, reader_.codes().frame(log, frames[i].code, frames[i].offset));
  }
  return nodes_[number] = at;
}

void TaskSamples::look(ProcessLog &log, const PythonThread &thread, const PythonStack &stack, uint64_t now) {
  tasks_.read(thread, stack);
  ++looks_;
  const auto &tasks = tasks_.tasks();
  nodes_.assign(tasks.size(), 0);
  seen_.assign(tasks.size(), nullptr);
  awaited_.assign(tasks.size(), false);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool runs = is_running(tasks[i], stack);
    if (!runs && (tasks[i].count == 0 || tasks[i].state == TaskState::running)) {
      reader_.add_given_up();
      if (auto known = known_.find(tasks[i].address); known != known_.end()) {
        known->second.seen = looks_;  // it changed while it was read: it goes on as it was
      }
      continue;
    }
    uint32_t code =
        tasks[i].count != 0 ? tasks_.frames(tasks[i])->code : stack.frames[stack.coroutine_from].code;
    seen_[i] = know(log, thread.tid, tasks[i], code, now);
    if (seen_[i] == nullptr) {
      continue;
    }
    seen_[i]->seen = looks_;
    if (tasks[i].awaited_by != SeenTask::kNobody) {
      awaited_[tasks[i].awaited_by] = true;
    }
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (seen_[i] == nullptr) {
      continue;
    }
    Known &known = *seen_[i];
    const bool runs = is_running(tasks[i], stack);
    uint32_t stack_now = node(log, stack, static_cast<uint32_t>(i), 0);
    auto flags = static_cast<uint8_t>((runs ? kSampleOnCpu : 0) | (awaited_[i] && !runs ? kSampleOuter : 0) |
                                      (!runs && tasks[i].state == TaskState::ready ? kSampleReady : 0));
    if (known.stack != stack_now || known.flags != flags) {
      write(log, thread.tid, known, now);
      known.stack = stack_now;
      known.flags = flags;
      known.start = now;
      known.since = ticks_;
    }
  }
  for (auto at = known_.begin(); at != known_.end();) {
    if (at->second.seen == looks_) {
      ++at;
      continue;
    }
    write(log, thread.tid, at->second, now);
    at = known_.erase(at);
  }
}

void TaskSamples::tick(ProcessLog &log, const PythonThread &thread, const PythonStack *stack, uint64_t now,
                       uint64_t interval) {
  if (interval != interval_ || now - written_ > kLongest) {
    for (auto &[address, known] : known_) {
      write(log, thread.tid, known, now);
    }
    interval_ = interval;
    written_ = now;
  }
  if (stack != nullptr && is_due()) {
    uint64_t used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    is_changed_ = false;
    without_loop_ = 0;
    look(log, thread, *stack, now);
    used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - used;
    next_look_ = clock_ns(CLOCK_MONOTONIC) + used * kShare;
  }
  ++ticks_;
  last_ = now;
}

}  // namespace warplens::agent
