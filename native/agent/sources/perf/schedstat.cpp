// Estimates thread states from the scheduler's counters.
// Sums are right, places within a look are not: waiting is put first, then running, then blocked.
#include "schedstat.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "agent/hooks/cpu.h"

namespace warplens::agent {
namespace {

constexpr uint64_t kTooShort = 50'000;  // ns: of waiting, not worth a row
constexpr size_t kMostThreads = 4096;

struct Entry {
  uint64_t inode;
  int64_t next;
  uint16_t size;
  uint8_t type;
  char name[];
};

}  // namespace

bool SchedStates::list() {
  tids_.clear();
  int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    return false;
  }
  alignas(8) char buffer[4096];
  for (long n = 0; (n = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0;) {
    for (long at = 0; at < n;) {
      const auto *entry = reinterpret_cast<const Entry *>(buffer + at);
      auto tid = static_cast<uint32_t>(std::strtoul(buffer + at + offsetof(Entry, name), nullptr, 10));
      if (tid != 0 && tids_.size() < kMostThreads && !is_own_thread(tid)) {
        tids_.push_back(tid);
      }
      at += entry->size;
    }
  }
  close(folder);
  return true;
}

bool SchedStates::read(uint32_t tid, Counts *counts) {
  char path[48], text[96];
  std::snprintf(path, sizeof(path), "/proc/self/task/%u/schedstat", tid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? ::read(fd, text, sizeof(text) - 1) : -1;
  if (fd >= 0) {
    close(fd);
  }
  if (n <= 0) {
    return false;
  }
  text[n] = '\0';
  char *end = text;
  counts->ran = std::strtoull(text, &end, 10);
  counts->waited = std::strtoull(end, &end, 10);
  // Of a thread that runs now, the count is as old as its last tick; its own clock is not.
  timespec clock{};
  auto id = static_cast<clockid_t>((~tid << 3) | 6);  // CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED
  if (clock_gettime(id, &clock) == 0) {
    counts->ran = static_cast<uint64_t>(clock.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(clock.tv_nsec);
  }
  return true;
}

void SchedStates::look(uint64_t now, ProcessLog *log) {
  if (!list()) {
    return;
  }
  for (uint32_t tid : tids_) {
    Counts counts;
    if (!read(tid, &counts)) {
      continue;
    }
    Thread &thread = threads_[tid];
    if (thread.seen == 0) {
      thread = {counts, now, ThreadState::blocked, now, now};
    } else if (now > thread.seen) {
      spread(tid, thread, counts, now, log);
    }
  }
  std::erase_if(threads_, [&](const auto &known) {
    bool gone = known.second.seen != now;
    if (gone) {
      write(known.first, known.second, log);
    }
    return gone;
  });
}

void SchedStates::spread(uint32_t tid, Thread &thread, const Counts &counts, uint64_t now, ProcessLog *log) {
  const uint64_t whole = now - thread.seen;
  uint64_t ran = std::min(counts.ran - std::min(counts.ran, thread.counts.ran), whole);
  uint64_t waited = std::min(counts.waited - std::min(counts.waited, thread.counts.waited), whole - ran);
  waited = waited < kTooShort ? 0 : waited;
  uint64_t at = thread.seen;
  extend(tid, thread, ThreadState::runnable, at += waited, log);
  extend(tid, thread, ThreadState::running, at += ran, log);
  extend(tid, thread, ThreadState::blocked, now, log);
  thread.counts = counts;
  thread.seen = now;
}

void SchedStates::extend(uint32_t tid, Thread &thread, ThreadState state, uint64_t end, ProcessLog *log) {
  if (end <= thread.until) {
    return;
  }
  if (state != thread.state) {
    write(tid, thread, log);
    thread.state = state;
    thread.since = thread.until;
  }
  thread.until = end;
}

void SchedStates::write(uint32_t tid, const Thread &thread, ProcessLog *log) {
  if (log == nullptr || thread.until <= thread.since) {
    return;
  }
  CpuStateRecord record{};
  record.head = {RecordType::cpu_state, kStateSampled, static_cast<uint16_t>(thread.state), 0};
  record.start = thread.since;
  record.end = thread.until;
  record.tid = tid;
  record.cpu = 0xffffffff;
  WideLog::Writer(log->wide()).append(record, record.start);
}

void SchedStates::end(ProcessLog *log) {
  for (auto &[tid, thread] : threads_) {
    write(tid, thread, log);
    thread.since = thread.until;
  }
}

}  // namespace warplens::agent
