// Wide chunks: every record is there once and whole, what is lost is counted, and the other parts of a spool do not mind.
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <thread>

#include "spool/schemas/schema.h"
#include "spool/wide/wide_log.h"
#include "spool/window.h"
#include "tests/wide_reader.h"
#include "warplens/cuda_records.h"

namespace {

std::string json() {
  return "{" + schema_json() + ", " + wide_schema_json() + "}";
}

bool write_kernel(WideLog::Writer &writer, uint32_t correlation, uint64_t start) {
  auto *record = writer.place<CudaKernelRecord>(RecordType::cuda_kernel);
  if (record == nullptr) {
    return false;
  }
  *record = {};
  record->start = start;
  record->end = start + 1;
  record->correlation = correlation;
  record->channel = ~correlation;  // the last member: is all of it there?
  writer.commit(record, {RecordType::cuda_kernel, 0, 0, 7}, start);
  return true;
}

bool write_api(WideLog::Writer &writer, uint32_t correlation) {
  auto *record = writer.place<CudaApiRecord>(RecordType::cuda_api);
  if (record == nullptr) {
    return false;
  }
  *record = {};
  record->start = record->end = now_ns(kClock);
  record->correlation = correlation;
  record->cbid = ~correlation;
  writer.commit(record, {RecordType::cuda_api, 0, 0, 7}, record->start);
  return true;
}

void write_stream(WideLog::Writer &writer, uint32_t number) {
  auto *record = writer.place<CudaStreamRecord>(RecordType::cuda_stream);
  if (record != nullptr) {
    *record = {};
    record->stream = number;
    writer.commit(record, {RecordType::cuda_stream, 0, 0, 0}, 1);
  }
}

// Several threads at once, two types in turn, beside ranges.
void test_threads() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, json(), kClock) == 0);
  constexpr uint32_t kEach = 30'000;
  std::thread threads[4];
  for (uint32_t t = 0; t < 4; ++t) {
    threads[t] = std::thread([&, t] {
      ThreadLog *log = process.enter_thread();
      for (uint32_t i = 0; i < kEach;) {
        log->push(0, named(1));
        {
          Busy busy;
          WideLog::Writer writer(process.wide());
          for (uint32_t end = std::min(i + 100, kEach); i < end; ++i) {
            CHECK(write_kernel(writer, t * kEach + i, i));
            CHECK(write_api(writer, t * kEach + i));
          }
        }
        log->pop(0, now_ns(kClock));
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  process.file().note_end(1);
  std::set<uint32_t> seen;
  for (const CudaKernelRecord &record : read<CudaKernelRecord>(scratch.path, RecordType::cuda_kernel)) {
    CHECK(record.channel == ~record.correlation && record.head.name == 7);
    CHECK(seen.insert(record.correlation).second);
  }
  CHECK(seen.size() == 4 * kEach);
  CHECK(read<CudaApiRecord>(scratch.path, RecordType::cuda_api).size() == 4 * kEach);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) == 4 * kEach / 100);
}

// A place that is not committed is nobody's, and a process that dies leaves what was committed.
void test_killed() {
  Scratch scratch;
  pid_t child = fork();
  if (child == 0) {
    auto *names = new Names;
    auto *process = new ProcessLog(*names);
    CHECK(process->open(scratch.path, json(), kClock) == 0);
    Busy busy;
    WideLog::Writer writer(process->wide());
    for (uint32_t i = 0; i < 5000; ++i) {
      auto *given_up = writer.place<CudaKernelRecord>(RecordType::cuda_kernel);
      std::memset(reinterpret_cast<char *>(given_up) + sizeof(RecordHead), 0xaa,
                  sizeof(CudaKernelRecord) - sizeof(RecordHead));
      write_kernel(writer, i, i);
    }
    auto *half = writer.place<CudaKernelRecord>(RecordType::cuda_kernel);
    half->correlation = 12345;
    kill(getpid(), SIGKILL);
  }
  waitpid(child, nullptr, 0);
  size_t whole = 0;
  for (const CudaKernelRecord &record : read<CudaKernelRecord>(scratch.path, RecordType::cuda_kernel)) {
    CHECK(record.correlation == whole && record.channel == ~record.correlation);
    ++whole;
  }
  CHECK(whole == 5000);
}

// What there is no room for is counted under its type.
void test_max_size() {
  Scratch scratch;
  ControlPage *control = control_page();
  control->max_bytes = 1 << 20;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, json(), kClock, control) == 0);
  constexpr uint32_t kRecords = 50'000;
  size_t written = 0;
  {
    Busy busy;
    WideLog::Writer writer(process.wide());
    for (uint32_t i = 0; i < kRecords; ++i) {
      written += write_kernel(writer, i, i) ? 1 : 0;
      write_api(writer, i);
    }
  }
  process.file().note_end(1);
  const FileHeader *header = process.file().header();
  size_t kept = read<CudaKernelRecord>(scratch.path, RecordType::cuda_kernel).size();
  size_t calls = read<CudaApiRecord>(scratch.path, RecordType::cuda_api).size();
  CHECK(kept == written && kept > 1000 && kept < kRecords);
  CHECK(kept + header->dropped[static_cast<size_t>(RecordType::cuda_kernel)].load() == kRecords);
  CHECK(calls + header->dropped[static_cast<size_t>(RecordType::cuda_api)].load() == kRecords);
  CHECK(header->error.load() == kMaxSizeReached);
  CHECK(control->bytes.load() <= control->max_bytes);
  unmap_memory(control, kControlSize);
}

// What could not be written to the disk, where only the write itself can tell.
void test_no_space() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, json(), kClock) == 0);
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_IGN);
  rlimit small{600 << 10, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  constexpr uint32_t kRecords = 20'000;
  {
    Busy busy;
    WideLog::Writer writer(process.wide());
    for (uint32_t i = 0; i < kRecords; ++i) {
      write_kernel(writer, i, i);
    }
  }
  process.file().note_end(1);
  setrlimit(RLIMIT_FSIZE, &old);
  std::vector<char> bytes;
  chunks(scratch.path, bytes, ChunkKind::wide);
  const auto *header = reinterpret_cast<const FileHeader *>(bytes.data());
  size_t kept = read<CudaKernelRecord>(scratch.path, RecordType::cuda_kernel).size();
  CHECK(kept > 1000 && kept < kRecords);
  CHECK(kept + header->dropped[static_cast<size_t>(RecordType::cuda_kernel)].load() == kRecords);
  CHECK(header->error.load() == EFBIG);
}

// A flight recorder: the file stays bounded, the last moments are complete, and what other records speak of stays for ever.
void test_flight_recorder() {
  Scratch scratch;
  ControlPage *control = control_page();
  control->keep_ns = 2'000'000;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, json(), kClock, control) == 0);
  uint32_t number = 0;
  uint32_t streams = 0;
  std::vector<uint64_t> starts;
  while (number < 400'000) {
    Busy busy;
    WideLog::Writer writer(process.wide());
    for (int i = 0; i < 1000; ++i) {
      starts.push_back(now_ns(kClock));
      write_kernel(writer, number++, starts.back());
    }
    write_stream(writer, streams++);
  }
  process.file().note_end(1);
  uint64_t now = starts.back();
  auto kept = read<CudaKernelRecord>(scratch.path, RecordType::cuda_kernel);
  std::sort(kept.begin(), kept.end(), [](auto &a, auto &b) { return a.correlation < b.correlation; });
  CHECK(kept.size() < number / 2);
  CHECK(process.file().header()->dropped[static_cast<size_t>(RecordType::cuda_kernel)].load() == 0);
  for (size_t i = 1; i < kept.size(); ++i) {
    CHECK(kept[i].channel == ~kept[i].correlation);
    CHECK(kept[i].start + control->keep_ns < now || kept[i].correlation == kept[i - 1].correlation + 1);
  }
  CHECK(kept.back().correlation == number - 1);
  CHECK(kept.front().start + control->keep_ns < now);
  CHECK(read<CudaStreamRecord>(scratch.path, RecordType::cuda_stream).size() == streams);
  unmap_memory(control, kControlSize);
}

// What a closed window holds is not written anew, though it was written after the window closed.
void test_saved() {
  Scratch scratch;
  ControlPage *control = control_page();
  control->keep_ns = 2'000'000;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, json(), kClock, control) == 0);
  uint64_t launched = now_ns(kClock);
  CHECK(keep_window(control, Cause::keep, 1'000'000, true, launched + 1000) == 1);
  usleep(1000);
  Busy busy;
  WideLog::Writer writer(process.wide());
  constexpr uint32_t kSaved = 20'000;
  for (uint32_t i = 0; i < kSaved; ++i) {
    write_kernel(writer, i, launched + 500'000'000 + i);  // on the GPU it began later still
  }
  uint64_t until = now_ns(kClock) + 3'000'000'000;  // and GPU work of now is not of that window any more
  for (uint32_t i = 0; i < 300'000; ++i) {
    write_kernel(writer, kSaved + i, until + i);
  }
  process.file().note_end(1);
  size_t saved = 0;
  for (const CudaKernelRecord &record : read<CudaKernelRecord>(scratch.path, RecordType::cuda_kernel)) {
    saved += record.correlation < kSaved ? 1 : 0;
  }
  CHECK(saved == kSaved);
  unmap_memory(control, kControlSize);
}

// The recording ends while a batch is being written: what still comes goes nowhere.
void test_finish() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, json(), kClock) == 0);
  {
    Busy busy;
    WideLog::Writer writer(process.wide());
    write_kernel(writer, 0, 1);
    process.finish();
    for (uint32_t i = 1; i < 5000; ++i) {
      write_kernel(writer, i, 1);
    }
  }
  CHECK(read<CudaKernelRecord>(scratch.path, RecordType::cuda_kernel).size() == 1);
}

}  // namespace

int main() {
  for (bool in_memory : {false, true}) {
    setenv("WARPLENS_SPOOL_SPACE", in_memory ? "buffered" : "reserved", 1);
    test_threads();
    if (!in_memory) {
      test_killed();
      test_max_size();
    } else {
      test_no_space();
    }
    test_flight_recorder();
    test_saved();
    test_finish();
  }
  std::printf("wide: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
