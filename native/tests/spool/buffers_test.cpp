// Files whose space cannot be reserved: what is in them at the end, after a kill, and when there is no room.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "spool/schemas/schema.h"
#include "tests/scratch.h"

namespace {

std::string json() {
  return "{" + schema_json() + "}";
}

void ranges(ThreadLog &log, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    log.push(0, named(1));
    log.pop(0, now_ns(kClock));
  }
}

const FileHeader &header_of(std::vector<char> &bytes) {
  return *reinterpret_cast<const FileHeader *>(bytes.data());
}

void test_all_is_written() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, json(), kClock) == 0);
  constexpr size_t kRanges = 60'000;
  std::thread threads[4];
  for (std::thread &thread : threads) {
    thread = std::thread([&] {
      ThreadLog *log = process.enter_thread();
      ranges(*log, kRanges);
      log->push(0, named(2));
      for (int i = 0; i < 3000; ++i) {
        ThreadLog::Busy busy(*log);
        char text[32];
        int size = std::snprintf(text, sizeof(text), "text %d", i);
        process.intern({text, static_cast<size_t>(size)});
        std::string payload(static_cast<size_t>(i), 'x');
        BlobLog::Blob first = log->write_blob({0, 0, 1, 0}, payload.data(), payload.size());
        BlobLog::Blob second = log->write_blob({0, 0, 1, 0}, payload.data(), payload.size());
        std::atomic_ref(first.head->next).store(second.offset);
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  process.file().note_end(7);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) == 4 * kRanges);
  CHECK(count(scratch.path, ChunkKind::open, RecordType::range) == 4);
  std::vector<char> bytes;
  size_t chained = 0;
  size_t blobs = 0;
  for (const ChunkHeader *chunk : chunks(scratch.path, bytes, ChunkKind::blobs)) {
    const char *at = reinterpret_cast<const char *>(chunk + 1);
    const char *end = reinterpret_cast<const char *>(chunk) + chunk->size;
    for (const BlobHead *blob = nullptr; at + sizeof(BlobHead) <= end;
         at += (sizeof(BlobHead) + blob->size_plus_1 + 6) / 8 * 8) {
      blob = reinterpret_cast<const BlobHead *>(at);
      if (blob->size_plus_1 == 0) {
        break;
      }
      ++blobs;
      chained += blob->next != 0 ? 1 : 0;
      CHECK(blob->size_plus_1 == 1 || at[sizeof(BlobHead) + blob->size_plus_1 - 2] == 'x');
    }
  }
  CHECK(blobs == 4 * 6000 && chained == 4 * 3000);
  CHECK(header_of(bytes).end_ns.load() == 7);
  CHECK(header_of(bytes).flags == kSpoolBuffered);
  CHECK(header_of(bytes).dropped[1].load() == 0 && header_of(bytes).error.load() == 0);
}

// After a kill all is there but what came in the last moment.
void test_kill() {
  for (int round = 0; round < 5; ++round) {
    Scratch scratch;
    auto *closed = new (mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
        std::atomic<uint64_t>[2]{};
    pid_t child = fork();
    if (child == 0) {
      auto *names = new Names;
      auto *process = new ProcessLog(*names);
      CHECK(process->open(scratch.path, json(), kClock) == 0);
      ThreadLog *log = process->enter_thread();
      ranges(*log, 50'000);
      closed[0].store(50'000);
      usleep(5000 * Buffers::kEveryMs);  // long enough for the thread to have its turn, even here
      closed[1].store(1);
      ranges(*log, static_cast<size_t>(1000 * round));
      pause();
    }
    for (int i = 0; i < 1000 && (closed[1].load() == 0); ++i) {
      usleep(10'000);
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    size_t kept = count(scratch.path, ChunkKind::records, RecordType::range);
    CHECK(kept >= 50'000 && kept <= 50'000 + 1000 * static_cast<size_t>(round));
    munmap(closed, kPage);
  }
}

void test_no_space() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, json(), kClock) == 0);
  ThreadLog *log = process.enter_thread();
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  ranges(*log, 9000);  // takes the file's next step
  rlimit small{300 << 10, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  ranges(*log, 100'000);
  process.file().note_end(7);
  std::vector<char> bytes;
  chunks(scratch.path, bytes, ChunkKind::records);
  size_t kept = count(scratch.path, ChunkKind::records, RecordType::range) + closed(scratch.path, 1);
  CHECK(kept > 3000 && kept < 109'000);
  CHECK(kept + header_of(bytes).dropped[1].load() == 109'000);
  CHECK(header_of(bytes).error.load() == EFBIG);
  setrlimit(RLIMIT_FSIZE, &old);
}

}  // namespace

int main() {
  setenv("WARPLENS_SPOOL_SPACE", "buffered", 1);
  test_all_is_written();
  test_kill();
  test_no_space();
  std::printf("buffers: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
