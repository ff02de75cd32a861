// Merges the switches of all CPUs into states of threads.
// A thread may leave one CPU and return on another, so the records of all rings are sorted first.
#include "states.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "agent/hooks/cpu.h"
#include "ring.h"
#include "spool/system/subject.h"
#include "warplens/cuda_records.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kNoCpu = 0xffffffff;
constexpr size_t kMostThreads = 1 << 20;
constexpr size_t kMostNames = 1 << 14;

}  // namespace

void PerfStates::begin(uint32_t tid, ThreadState state, uint64_t time) {
  threads_[tid] = {state, kNoCpu, time};
}

void PerfStates::add(const perf_event_header &record, uint32_t cpu) {
  PerfFields fields(record);
  if (has_subject_left()) {
    return;
  }
  if (record.type == PERF_RECORD_SWITCH) {
    fields.take<uint32_t>();
    auto tid = fields.take<uint32_t>();
    auto time = fields.take<uint64_t>();
    What what = (record.misc & PERF_RECORD_MISC_SWITCH_OUT) == 0           ? What::in
                : (record.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) == 0 ? What::out_blocked
                                                                           : What::out_runnable;
    pending_.push_back({time, tid, cpu, what});
  } else if (record.type == PERF_RECORD_FORK || record.type == PERF_RECORD_EXIT) {
    auto pid = fields.take<uint32_t>();
    fields.take<uint32_t>();
    auto tid = fields.take<uint32_t>();
    fields.take<uint32_t>();
    auto time = fields.take<uint64_t>();
    if (pid == static_cast<uint32_t>(subject())) {
      pending_.push_back({time, tid, kNoCpu, record.type == PERF_RECORD_FORK ? What::born : What::ended});
    }
  } else if (record.type == PERF_RECORD_COMM) {
    auto pid = fields.take<uint32_t>();
    auto tid = fields.take<uint32_t>();
    if ((record.misc & PERF_RECORD_MISC_COMM_EXEC) == 0) {
      name(tid, {fields.at(), strnlen(fields.at(), fields.left())});
    } else if (pid == static_cast<uint32_t>(subject())) {
      note_subject_left();
    }
  } else if (record.type == PERF_RECORD_LOST) {
    fields.take<uint64_t>();
    lost_ += fields.take<uint64_t>();
  }
}

// The main thread is called as the process.
void PerfStates::name(uint32_t tid, std::string_view name) {
  if (tid != static_cast<uint32_t>(subject()) && names_.size() < kMostNames && !is_own_thread(tid)) {
    names_[tid] = name;
  }
}

void PerfStates::write_names(ProcessLog &log) {
  WideLog::Writer writer(log.wide());
  const uint64_t now = now_ns(log.clock());
  for (const auto &[tid, name] : names_) {
    if (uint32_t number = log.intern(name); number != 0) {
      writer.append(CudaThreadRecord{{RecordType::cuda_thread, 0, 0, number}, now, tid, 0}, now);
    }
  }
  names_.clear();
}

void PerfStates::settle(uint64_t until, ProcessLog *log) {
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const Happening &a, const Happening &b) { return a.time < b.time; });
  if (log != nullptr && !names_.empty()) {
    write_names(*log);
  }
  auto certain =
      std::find_if(pending_.begin(), pending_.end(), [&](const Happening &one) { return one.time >= until; });
  std::for_each(pending_.begin(), certain, [&](const Happening &one) { apply(one, log); });
  pending_.erase(pending_.begin(), certain);
}

void PerfStates::end(uint64_t time, ProcessLog *log) {
  settle(~uint64_t{0}, log);
  for (auto &[tid, thread] : threads_) {
    write(tid, thread, time, log);
    thread.since = time;
  }
}

void PerfStates::apply(const Happening &happening, ProcessLog *log) {
  auto [tid, cpu, time] = std::tuple(happening.tid, happening.cpu, happening.time);
  switch (happening.what) {
    case What::in:
      turn(tid, ThreadState::running, cpu, time, log);
      break;
    case What::out_blocked:
    case What::out_runnable: {
      if (auto at = threads_.find(tid); at != threads_.end() && at->second.cpu == kNoCpu) {
        at->second.cpu = cpu;  // of the thread that we began in
      }
      bool runnable = happening.what == What::out_runnable;
      turn(tid, runnable ? ThreadState::runnable : ThreadState::blocked, kNoCpu, time, log);
      break;
    }
    case What::born:
      turn(tid, ThreadState::runnable, kNoCpu, time, log);
      break;
    case What::ended:
      if (auto at = threads_.find(tid); at != threads_.end()) {
        write(tid, at->second, time, log);
        threads_.erase(at);
      }
      break;
  }
}

void PerfStates::turn(uint32_t tid, ThreadState state, uint32_t cpu, uint64_t time, ProcessLog *log) {
  auto at = threads_.find(tid);
  if (at == threads_.end()) {
    if (threads_.size() < kMostThreads) {
      threads_[tid] = {state, cpu, time};
    }
    return;
  }
  write(tid, at->second, time, log);
  at->second = {state, cpu, time};
}

void PerfStates::write(uint32_t tid, const Thread &thread, uint64_t end, ProcessLog *log) {
  if (log == nullptr || end <= thread.since || is_own_thread(tid)) {
    return;
  }
  CpuStateRecord record{};
  record.head = {RecordType::cpu_state, 0, static_cast<uint16_t>(thread.state), 0};
  record.start = thread.since;
  record.end = end;
  record.tid = tid;
  record.cpu = thread.state == ThreadState::running ? thread.cpu : kNoCpu;
  WideLog::Writer(log->wide()).append(record, record.start);
}

}  // namespace warplens::agent
