// A flight recorder over days, on a clock that runs 100,000 times as fast: what it keeps stays small, and it says what it gave up.
#include <pthread.h>
#include <sys/mman.h>

#include <memory>

#include "spool/system/clock.h"
#include "spool/window.h"
#include "tests/scratch.h"
#include "warplens/cuda_records.h"

namespace {

constexpr uint64_t kSpeed = 100'000;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kDay = 86'400 * kSecond;

// The machine's counter, so scaled that a second of ours is more than a day there.
ClockParams fast_clock() {
#if defined(__aarch64__)
  constexpr ClockKind kKind = ClockKind::cntvct;
#else
  constexpr ClockKind kKind = ClockKind::tsc;
#endif
  ClockSample early = sample_clocks(kKind);
  usleep(20'000);
  ClockSample late = sample_clocks(kKind);
  ClockParams clock = calibrate(kKind, early, late);
  clock.mult *= kSpeed;
  clock.t0 = late.counter;
  clock.base_ns = late.monotonic;
  return clock;
}

struct Recorder {
  explicit Recorder(uint64_t keep, uint64_t max_bytes = 0) {
    page->keep_ns = keep;
    page->max_bytes = max_bytes;
    page->clock = clock;
    windows_of(page)->open_ns.store(1);
    page->gate.store(1);
    CHECK(process.open(scratch.path, "{}", clock, page) == 0);
    begun = now_ns(clock);
  }
  ~Recorder() { unmap_memory(page, kControlSize); }

  uint64_t now() const { return now_ns(clock) - begun; }
  const FileHeader &header() { return *process.file().header(); }
  size_t kept() { return count(scratch.path, ChunkKind::records, RecordType::range); }

  Scratch scratch;
  ClockParams clock = fast_clock();
  ControlPage *page = new (map_memory(kControlSize)) ControlPage{};
  Names names;
  // The last numbers of its start/end ranges: they run out, and begin again.
  ProcessLog process{names, 1, 0xffffffff - 1000};
  uint64_t begun = 0;
};

uint64_t record(Recorder &recorder, ThreadLog *log, uint64_t until) {
  uint64_t ranges = 0;
  for (; recorder.now() < until; ++ranges) {
    log->push(0, named(1));
    log->pop(0, now_ns(recorder.clock));
  }
  return ranges;
}

void test_three_days() {
  constexpr uint64_t kKeep = 3600 * kSecond;  // 36 ms of ours
  Recorder recorder(kKeep);
  ThreadLog *log = recorder.process.enter_thread();
  uint64_t outer = recorder.process.start_range(*log, 0, named(3));
  log->push(0, named(2));
  uint64_t day = record(recorder, log, kDay);
  uint64_t after_a_day = recorder.header().chunk_end.load();
  uint64_t ranges = day + record(recorder, log, 3 * kDay);
  // As much as after a day, but for what the machine's mood makes of an hour.
  CHECK(recorder.header().chunk_end.load() <= 2 * after_a_day);
  CHECK(recorder.header().chunk_end.load() < ranges * sizeof(EventRecord) / 4);
  size_t kept = recorder.kept();
  uint64_t given_up = recorder.header().given_up.load();
  CHECK(given_up > ranges / 2 && kept + given_up >= ranges && kept + given_up < ranges + ranges / 100);
  uint64_t end = now_ns(recorder.clock);
  CHECK(recorder.header().given_up_ns.load() + kKeep <= end);
  CHECK(recorder.header().given_up_ns.load() + 10 * kKeep > end);
  CHECK(recorder.header().early_ns.load() == 0 && recorder.header().first_loss_ns.load() == 0);
  log->pop(0, now_ns(recorder.clock));
  CHECK(recorder.process.end_range(*log, outer, now_ns(recorder.clock)));
  for (int i = 0; i < 5000; ++i) {
    uint64_t id = recorder.process.start_range(*log, 0, named(4));
    CHECK(id != 0 && id != outer && recorder.process.end_range(*log, id, now_ns(recorder.clock)));
  }
}

struct Worker {
  Recorder *recorder;
  ThreadLog *log;
};

void *short_thread(void *argument) {
  auto *worker = static_cast<Worker *>(argument);
  worker->log = worker->recorder->process.enter_thread();
  for (int i = 0; i < 100; ++i) {
    worker->log->push(0, named(1));
    worker->log->pop(0, now_ns(worker->recorder->clock));
  }
  worker->recorder->process.leave_thread(worker->log);
  return nullptr;
}

void test_threads_for_days() {
  Recorder recorder(600 * kSecond);
  uint64_t sizes[2] = {};
  for (uint64_t day = 0; day < 2; ++day) {
    while (recorder.now() < (day + 1) * kDay) {
      Worker worker{&recorder, nullptr};
      pthread_t thread;
      CHECK(pthread_create(&thread, nullptr, short_thread, &worker) == 0);
      pthread_join(thread, nullptr);
    }
    sizes[day] = recorder.header().chunk_end.load();
  }
  CHECK(sizes[1] <= 2 * sizes[0]);
  CHECK(recorder.header().given_up.load() > 0);
}

// There is less room than for what is to be kept: the latest records are there, and the file says from when on.
void test_less_room_than_asked_for() {
  constexpr uint64_t kMost = 2 << 20;
  Recorder recorder(30 * kDay, kMost);
  ThreadLog *log = recorder.process.enter_thread();
  uint64_t ranges = record(recorder, log, 2 * kDay);
  uint64_t last = now_ns(recorder.clock);
  log->push(0, named(7));
  log->pop(0, last);
  CHECK(recorder.page->bytes.load() <= kMost && recorder.page->over.load() > 0);
  CHECK(recorder.header().dropped[1].load() == 0);
  CHECK(recorder.header().error.load() == kMaxSizeReached);
  CHECK(recorder.header().early_ns.load() == recorder.header().given_up_ns.load());
  CHECK(recorder.header().early_ns.load() > recorder.begun && recorder.header().early_ns.load() <= last);
  CHECK(recorder.kept() + recorder.header().given_up.load() >= ranges);
  CHECK(recorder.kept() > kMost / 2 / sizeof(EventRecord));
}

size_t ranges_named(const std::string &path, uint32_t name) {
  std::vector<char> bytes;
  size_t n = 0;
  for (const ChunkHeader *chunk : chunks(path, bytes, ChunkKind::records)) {
    const auto *record = reinterpret_cast<const EventRecord *>(chunk + 1);
    for (size_t left = (chunk->size - sizeof(ChunkHeader)) / sizeof(EventRecord); left > 0;
         --left, ++record) {
      n += record->head.type == RecordType::range && record->head.name == name ? 1 : 0;
    }
  }
  return n;
}

void record_one(Recorder &recorder, ThreadLog *log, uint32_t name) {
  log->push(0, named(name));
  log->pop(0, now_ns(recorder.clock));
}

// All of the file is one thread's when others begin. They get its oldest chunks, for their stacks too, and so do new names.
void test_threads_that_begin_in_a_full_file() {
  constexpr uint32_t kOthers = 16;
  constexpr size_t kRanges = 500;
  Recorder recorder(30 * kDay, 2 << 20);
  ThreadLog *first = recorder.process.enter_thread();
  while (recorder.page->over.load() == 0) {
    record_one(recorder, first, 1);
  }
  ThreadLog *others[kOthers];
  for (ThreadLog *&log : others) {
    log = recorder.process.enter_thread();
  }
  for (size_t i = 0; i < kRanges; ++i) {
    for (uint32_t number = 0; number < kOthers; ++number) {
      record_one(recorder, others[number], 10 + number);
    }
    record_one(recorder, first, 2);
  }
  for (uint32_t number = 0; number < kOthers; ++number) {
    CHECK(ranges_named(recorder.scratch.path, 10 + number) == kRanges);
  }
  CHECK(ranges_named(recorder.scratch.path, 2) == kRanges);
  CHECK(recorder.process.start_range(*first, 0, named(3)) != 0);
  for (const auto &lost : recorder.header().dropped) {
    CHECK(lost.load() == 0);
  }
  // Names without end do not take the whole file.
  for (uint32_t number = 0; number < 50'000; ++number) {
    recorder.process.passing("a name that is written once, by request " + std::to_string(number));
  }
  for (size_t i = 0; i < 50'000; ++i) {
    record_one(recorder, first, 4);
  }
  CHECK(ranges_named(recorder.scratch.path, 4) > (256 << 10) / sizeof(EventRecord));
  CHECK(recorder.header().dropped[static_cast<size_t>(RecordType::range)].load() == 0);
}

// Without --keep-last what comes last is lost, and the file says from when to when.
void test_times_of_losses() {
  Recorder recorder(0, 1 << 20);
  ThreadLog *log = recorder.process.enter_thread();
  uint64_t ranges = record(recorder, log, kDay);
  uint64_t end = now_ns(recorder.clock);
  const FileHeader &header = recorder.header();
  CHECK(header.dropped[1].load() > 0 && header.dropped[1].load() + recorder.kept() <= ranges);
  CHECK(header.first_loss_ns.load() > recorder.begun);
  CHECK(header.first_loss_ns.load() < header.last_loss_ns.load() && header.last_loss_ns.load() <= end);
  CHECK(header.last_loss_ns.load() + kDay / 10 > end);
  CHECK(header.given_up.load() == 0);
}

void test_bytes_of_others() {
  Recorder recorder(0, 1 << 20);
  uint64_t before = recorder.page->bytes.load();
  CHECK(charge(recorder.page, 1000) == 0 && recorder.page->bytes.load() == before + 1000);
  CHECK(charge(recorder.page, 1 << 20) == kMaxSizeReached);
  discharge(recorder.page, 1000);
  CHECK(recorder.page->bytes.load() == before);
  discharge(recorder.page, 1 << 30);
  CHECK(recorder.page->bytes.load() == 0);
}

}  // namespace

int main() {
  test_three_days();
  test_threads_for_days();
  test_less_room_than_asked_for();
  test_threads_that_begin_in_a_full_file();
  test_times_of_losses();
  test_bytes_of_others();
  std::printf("days: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
