// What recording adds to the program's resident size: little, whatever was recorded.
#include <sys/mman.h>

#include <cstdio>
#include <cstring>

#include "spool/system/clock.h"
#include "spool/window.h"
#include "tests/scratch.h"
#include "warplens/cpu_records.h"
#include "warplens/cuda_records.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Bytes of the file that are in this process's memory.
size_t resident(const std::string &path) {
  size_t total = 0;
  std::string name = path.substr(path.rfind('/', path.rfind('/') - 1) + 1);
  if (FILE *maps = std::fopen("/proc/self/smaps", "r")) {
    char line[4096];
    for (bool ours = false; std::fgets(line, sizeof(line), maps) != nullptr;) {
      size_t kib = 0;
      if (std::strchr(line, '-') != nullptr && std::strchr(line, '-') < std::strchr(line, ' ')) {
        ours = std::strstr(line, name.c_str()) != nullptr;
      } else if (ours && std::sscanf(line, "Rss: %zu", &kib) == 1) {
        total += kib << 10;
      }
    }
    std::fclose(maps);
  }
  return total;
}

size_t size_of(const SpoolFile &file) {
  return file.header()->chunk_end.load();
}

void test_ranges() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  constexpr size_t kRanges = 1'000'000;
  size_t most = 0;
  for (size_t i = 0; i < kRanges; ++i) {
    log->push(0, named(1));
    log->pop(0, now_ns(kClock));
    if (i % 50'000 == 0) {
      most = std::max(most, resident(scratch.path));
    }
  }
  CHECK(most > 0 && most <= 4 * kMiB);
  CHECK(size_of(process.file()) > 30 * kMiB);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) == kRanges);
}

void write_payloads(ThreadLog &log, const std::string &payload) {
  ThreadLog::Busy busy(log);
  BlobLog::Blob first = log.write_blob({0, 0, 1, 0}, payload.data(), payload.size());
  BlobLog::Blob second = log.write_blob({0, 0, 1, 0}, payload.data(), payload.size());
  std::atomic_ref(first.head->next).store(second.offset);
}

void test_everything_a_thread_writes() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  Lane *lane = process.enter_lane();
  size_t most = 0;
  std::string payload(200, 'x');
  for (int i = 0; i < 200'000; ++i) {
    write_payloads(*log, payload);
    OsCallRecord call{};
    call.head = {RecordType::os_call, 0, 0, 0};
    CHECK(lane->append(call, 0));
    GilRecord gil{};
    gil.head = {RecordType::gil, 0, 0, 0};
    CHECK(lane->append(gil, 0));
    CudaApiRecord api{};
    api.head = {RecordType::cuda_api, 0, 0, 0};
    {
      Busy busy;
      CHECK(WideLog::Writer(process.wide()).append(api, 0));
    }
    if (i % 20'000 == 0) {
      most = std::max(most, resident(scratch.path));
    }
  }
  CHECK(size_of(process.file()) > 100 * kMiB);
  CHECK(most > 0 && most <= 32 * kMiB);
}

// KiB of a line of /proc/self/status.
size_t status(const char *name) {
  size_t kib = 0;
  if (FILE *file = std::fopen("/proc/self/status", "r")) {
    char line[256];
    std::string format = std::string(name) + ": %zu";
    while (std::fgets(line, sizeof(line), file) != nullptr && std::sscanf(line, format.c_str(), &kib) != 1) {
    }
    std::fclose(file);
  }
  return kib;
}

// The tables of pages count, too: a GiB takes 2 MiB of them.
void test_tables_of_pages() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  ThreadLog *slow = process.enter_thread();
  for (int i = 0; i < 16; ++i) {  // with 16 open chunks the pages are small
    ThreadLog *other = process.enter_thread();
    other->push(0, named(2));
    other->pop(0, now_ns(kClock));
  }
  size_t before = status("VmPTE");
  for (size_t i = 0; i < 16'000'000; ++i) {
    log->push(0, named(1));
    log->pop(0, now_ns(kClock));
    if (i % 1'000'000 == 0) {  // in a chunk of a step that was mapped anew meanwhile
      slow->push(0, named(2));
      slow->pop(0, now_ns(kClock));
    }
  }
  CHECK(size_of(process.file()) > 600 * kMiB);
  CHECK(status("VmPTE") < before + 700);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) == 16'000'032);
}

// However many threads: 32 MiB, and 1 MiB for each.
void test_many_threads() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  constexpr size_t kThreads = 48;
  std::string payload(400, 'x');
  std::vector<ThreadLog *> logs;
  std::vector<Lane *> lanes;
  for (size_t i = 0; i < kThreads; ++i) {
    logs.push_back(process.enter_thread());
    lanes.push_back(process.enter_lane());
  }
  for (int i = 0; i < 8'000; ++i) {
    for (size_t thread = 0; thread < kThreads; ++thread) {
      logs[thread]->push(0, named(1));
      logs[thread]->pop(0, now_ns(kClock));
      write_payloads(*logs[thread], payload);
      OsCallRecord call{};
      call.head = {RecordType::os_call, 0, 0, 0};
      lanes[thread]->append(call, 0);
      GilRecord gil{};
      gil.head = {RecordType::gil, 0, 0, 0};
      lanes[thread]->append(gil, 0);
    }
  }
  CHECK(size_of(process.file()) > 300 * kMiB);
  size_t now = resident(scratch.path);
  CHECK(now > 0 && now <= (32 + kThreads) * kMiB);
}

// A flight recorder writes its chunks anew: what was let go comes back for that.
void test_a_ring() {
  Scratch scratch;
  auto *control = new (map_memory(kControlSize)) ControlPage{};
  windows_of(control)->open_ns.store(1);
  control->gate.store(1);
  control->keep_ns = 1'000'000;
  {
    Names names;
    ProcessLog process(names);
    CHECK(process.open(scratch.path, "{}", kClock, control) == 0);
    ThreadLog *log = process.enter_thread();
    for (size_t i = 0; i < 2'000'000; ++i) {
      log->push(0, named(1));
      log->pop(0, now_ns(kClock));
    }
    CHECK(resident(scratch.path) <= 4 * kMiB);
    CHECK(size_of(process.file()) < 60 * kMiB);  // it is a ring
    size_t kept = count(scratch.path, ChunkKind::records, RecordType::range);
    CHECK(kept > 1000 && kept < 1'900'000);
  }
  unmap_memory(control, kControlSize);
}

}  // namespace

int main() {
  test_ranges();
  test_everything_a_thread_writes();
  test_many_threads();
  test_tables_of_pages();
  test_a_ring();
  std::printf("resident: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
