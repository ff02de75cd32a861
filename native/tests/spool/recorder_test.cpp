// The flight recorder: a bounded file in which the last moments are complete, whenever somebody looks or the process is killed.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <new>
#include <random>
#include <thread>

#include "spool/schemas/schema.h"
#include "spool/window.h"
#include "tests/scratch.h"

namespace {

constexpr uint64_t kKeep = 30'000'000;
constexpr int kThreads = 3;

// Seen by the test and by the process that it kills.
struct Shared {
  std::atomic<uint64_t> closed[kThreads];
  std::atomic<uint64_t> at[kThreads];  // when
  std::atomic<uint64_t> threads;       // short ones, that ended
};

Shared *share() {
  void *at = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return new (at) Shared{};
}

ControlPage *recorder(uint64_t keep) {
  auto *page = new (map_memory(kControlSize)) ControlPage{};
  windows_of(page)->open_ns.store(1);
  page->gate.store(1);
  page->keep_ns = keep;
  return page;
}

void record(ThreadLog &log, uint64_t number, bool blob) {
  Label label;
  label.name = 1;
  label.payload = number;
  label.flags = 1;
  if (blob) {
    ThreadLog::Busy busy(log);
    uint64_t words[8];
    std::fill(std::begin(words), std::end(words), number);
    label.payload = log.write_blob({0, 0, 18, 0}, words, sizeof(words)).offset;
    label.flags = kPayloadMask;
  }
  log.push(0, label);
  log.pop(0, now_ns(kClock));
}

struct Seen {
  uint64_t number;
  uint64_t end;
};

// Ranges by thread, in the order of their chunks; `broken` counts payloads that are not what their range says.
std::map<uint32_t, std::vector<Seen>> read(const std::string &path, size_t *broken) {
  std::vector<char> bytes;
  std::vector<const ChunkHeader *> found = chunks(path, bytes, ChunkKind::records);
  std::sort(found.begin(), found.end(),
            [](const ChunkHeader *a, const ChunkHeader *b) { return a->sequence < b->sequence; });
  std::map<uint32_t, std::vector<Seen>> result;
  for (const ChunkHeader *chunk : found) {
    if (chunk->sequence == kRenewing) {
      continue;
    }
    uint32_t thread = chunk->thread;
    for (size_t at = sizeof(ChunkHeader); at + sizeof(EventRecord) <= chunk->size;
         at += sizeof(EventRecord)) {
      const auto *record = reinterpret_cast<const EventRecord *>(reinterpret_cast<const char *>(chunk) + at);
      if (record->head.type == RecordType::none) {
        break;
      }
      if (record->head.type == RecordType::thread_switch) {
        thread = reinterpret_cast<const MetaRecord *>(record)->thread;
      }
      if (record->head.type == RecordType::range && (record->head.flags & kPayloadMask) == 1) {
        result[thread].push_back({record->payload, record->end});
      } else if (record->head.type == RecordType::range) {
        uint64_t offset = record->payload & ((uint64_t{1} << kBlobGeneration) - 1);
        const auto *head = reinterpret_cast<const BlobHead *>(bytes.data() + offset);
        const ChunkHeader *holder = nullptr;
        for (uint64_t page = offset / kPage * kPage; holder == nullptr; page -= kPage) {
          const auto *one = reinterpret_cast<const ChunkHeader *>(bytes.data() + page);
          holder = one->magic == kChunkMagic && one->kind == ChunkKind::blobs ? one : nullptr;
        }
        if (holder->sequence == kRenewing || holder->generation != record->payload >> kBlobGeneration) {
          continue;  // told apart from what lies there now
        }
        uint64_t words[8] = {};
        std::memcpy(words, head + 1, sizeof(words));
        *broken += head->size_plus_1 != 65 || words[0] != words[7] ? 1 : 0;
        result[thread].push_back({words[0], record->end});
      }
    }
  }
  return result;
}

// All from the last `kKeep` before the newest one are there, up to the number `closed`.
void check_complete(std::vector<Seen> &seen, uint64_t closed, uint64_t now) {
  CHECK(!seen.empty());
  if (seen.empty()) {
    return;
  }
  CHECK(seen.back().number == closed || seen.back().number == closed + 1);
  CHECK(seen.front().number == 1 || seen.front().end < now - kKeep);
  size_t gaps = 0;
  for (size_t i = 1; i < seen.size(); ++i) {
    gaps += seen[i].end >= now - kKeep && seen[i].number != seen[i - 1].number + 1 ? 1 : 0;
    gaps += seen[i].number <= seen[i - 1].number ? 1 : 0;
  }
  CHECK(gaps == 0);
}

[[noreturn]] void storm(const std::string &path, Shared *shared) {
  auto *names = new Names;
  auto *process = new ProcessLog(*names);
  CHECK(process->open(path, "{" + schema_json() + "}", kClock, recorder(kKeep)) == 0);
  for (int thread = 0; thread < kThreads; ++thread) {
    ThreadLog *log = process->enter_thread();
    std::thread([=] {
      for (uint64_t number = 1;; ++number) {
        record(*log, number, thread == 1);
        shared->closed[thread].store(number);
        shared->at[thread].store(now_ns(kClock));
      }
    }).detach();
  }
  for (;;) {  // and threads that come and go
    std::thread([=] {
      ThreadLog *log = process->enter_thread();
      for (int i = 0; i < 50; ++i) {
        record(*log, 1, false);
      }
      process->leave_thread(log);
    }).join();
    shared->threads.fetch_add(1);
  }
}

void test_kill() {
  std::mt19937 random(4711);
  int complete = 0;
  for (int round = 0; round < 12 || (complete == 0 && round < 50); ++round) {
    Scratch scratch;
    Shared *shared = share();
    pid_t child = fork();
    if (child == 0) {
      storm(scratch.path, shared);
    }
    while (shared->threads.load() == 0) {
      usleep(1000);
    }
    usleep(random() % 300'000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    uint64_t now = now_ns(kClock);
    size_t broken = 0;
    auto seen = read(scratch.path, &broken);
    CHECK(broken == 0);
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      // Where a busy machine kept a thread waiting for longer, others may have its chunks.
      if (shared->at[thread].load() + kKeep > now) {
        check_complete(seen[thread], shared->closed[thread].load(), std::max(now, kKeep + 1));
        ++complete;
      }
    }
    munmap(shared, sizeof(Shared));
  }
}

// A program that records for ever: after some time its file does not grow any more.
void test_bounded() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  ControlPage *control = recorder(5'000'000);
  CHECK(process.open(scratch.path, "{}", kClock, control) == 0);
  uint64_t sizes[2] = {};
  uint64_t number = 0;
  ThreadLog *log = process.enter_thread();
  for (int part = 0; part < 2; ++part) {
    uint64_t end = now_ns(kClock) + 400'000'000;
    uint64_t next_thread = 0;
    for (uint64_t now = 0; (now = now_ns(kClock)) < end;) {
      // The same number in any period: the speed of the machine does not matter.
      for (int i = 0; i < 100; ++i) {
        record(*log, ++number, i % 10 == 0);
      }
      if (now > next_thread) {
        next_thread = now + 500'000;
        ThreadLog *other = process.enter_thread();
        record(*other, 1, false);
        process.leave_thread(other);
      }
      while (now_ns(kClock) < now + 100'000) {
      }
    }
    sizes[part] = process.file().header()->chunk_end.load();
  }
  CHECK(number > 10'000);
  CHECK(sizes[1] <= sizes[0] + (256 << 10));
  CHECK(sizes[1] < number * sizeof(EventRecord) / 2);
  CHECK(process.file().header()->dropped[1].load() == 0);
  unmap_memory(control, kControlSize);
}

// What was saved stays, however long the program goes on.
void test_saved() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  constexpr uint64_t kShort = 5'000'000;
  ControlPage *control = recorder(kShort);
  CHECK(process.open(scratch.path, "{}", kClock, control) == 0);
  ThreadLog *log = process.enter_thread();
  std::vector<uint64_t> ends(1);
  const auto go_on = [&](uint64_t time) {
    for (uint64_t end = now_ns(kClock) + time, now = 0; (now = now_ns(kClock)) < end;) {
      Label label = named(1);
      label.payload = ends.size();
      label.flags = 1;
      log->push(0, label);
      ends.push_back(now_ns(kClock));
      log->pop(0, ends.back());
      while (now_ns(kClock) < now + 1'000) {
      }
    }
  };
  for (int save = 1; save <= 3; ++save) {
    uint64_t now = 0;
    do {  // on a busy machine nothing may have happened in the last moments
      go_on(5'000'000);
      now = now_ns(kClock);
    } while (ends.size() <= 200 || ends[ends.size() - 200] + kShort / 2 <= now);
    CHECK(keep_window(control, Cause::keep, kShort / 2, save < 3, now) == save);
  }
  CHECK(open_window(control, Cause::command, 0) == 4);
  std::vector<char> bytes;
  size_t renewed = 0;
  for (int round = 0; round < 200 && renewed < 10; ++round) {
    go_on(10'000'000);
    renewed = 0;
    for (const ChunkHeader *chunk : chunks(scratch.path, bytes, ChunkKind::records)) {
      renewed += chunk->generation;
    }
  }
  CHECK(renewed >= 10);
  size_t broken = 0;
  auto seen = read(scratch.path, &broken)[0];
  for (size_t i = 0; i < 3; ++i) {
    const CaptureWindow &window = windows_of(control)[i];
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;
    for (uint64_t number = 1; number < ends.size(); ++number) {
      if (ends[number] > window.open_ns && ends[number] < window.close_ns) {
        least = std::min(least, number);
        most = number;
      }
    }
    CHECK(least < most);
    size_t found = 0;
    for (const Seen &one : seen) {
      found += one.number >= least && one.number <= most ? 1 : 0;
    }
    CHECK(found == most - least + 1);
  }
  unmap_memory(control, kControlSize);
}

}  // namespace

int main() {
  test_bounded();
  test_saved();
  test_kill();
  std::printf("recorder: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
