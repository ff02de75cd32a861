// The spool's writer: clock, growth and its limits, strings, stacks that do not nest, threads that follow one another.
#include <sys/resource.h>

#include <cerrno>
#include <thread>

#include "spool/schemas/schema.h"
#include "tests/scratch.h"

namespace {

void test_clock() {
  ClockKind kind = best_clock_kind();
  ClockSample early = sample_clocks(kind);
  usleep(20000);
  ClockSample late = sample_clocks(kind);
  ClockParams clock = calibrate(kind, early, late);
  uint64_t before = clock_ns(CLOCK_MONOTONIC);
  uint64_t now = now_ns(clock);
  uint64_t after = clock_ns(CLOCK_MONOTONIC);
  CHECK(now + 50'000 > before && now < after + 50'000);
  CHECK(calibrate(ClockKind::tsc, early, early).kind == ClockKind::monotonic);
  ClockParams twice = calibrate(ClockKind::tsc, {1000, 1'000'000, 0}, {3000, 1'001'000, 0});  // 0.5 ns a tick
  CHECK(to_ns(twice, 3000) == 1'001'000);
  CHECK(to_ns(twice, 5000) == 1'002'000);
}

// Days of a counter of 3 GHz, of a machine that runs for years: no step, no turn back where a half or all of its bits run over.
void test_clock_of_days() {
  constexpr uint64_t kSecond = 1'000'000'000, kTicks = 3 * kSecond;
  for (uint64_t first : {uint64_t{1} << 20, (uint64_t{1} << 62) + 12345, UINT64_MAX - 5 * kTicks}) {
    ClockParams clock = calibrate(ClockKind::tsc, {first, uint64_t{1} << 56, 0},
                                  {first + kTicks, (uint64_t{1} << 56) + kSecond, 0});
    CHECK(clock.kind == ClockKind::tsc);
    const uint64_t begin = to_ns(clock, first);
    CHECK(begin == uint64_t{1} << 56);
    for (uint64_t hours : {1u, 24u, 24u * 365u}) {
      const uint64_t ns = hours * 3600 * kSecond;
      const uint64_t found = to_ns(clock, first + hours * 3600 * kTicks) - begin;
      const uint64_t off = found > ns ? found - ns : ns - found;
      CHECK(off <= ns / 1'000'000'000 + 1);
    }
    for (uint64_t edge : {uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 48, uint64_t{1} << 53}) {
      const uint64_t before = to_ns(clock, first + edge - 1);
      const uint64_t after = to_ns(clock, first + edge);
      CHECK(after >= before && after - before <= 1);
      CHECK(to_ns(clock, first + edge + kTicks) - after - kSecond + 1 <= 2);
    }
  }
}

void test_stack() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  CHECK(process.open(scratch.path, "{}", kClock) == EEXIST);
  ThreadLog *log = process.enter_thread();
  CHECK(log->pop(0, 1) == -1);
  CHECK(log->push(0, named(1)) == 0);
  CHECK(log->push(1, named(2)) == 0);
  CHECK(log->push(0, named(3)) == 1);
  CHECK(log->pop(1, 2) == 0);  // from the middle
  CHECK(log->pop(1, 3) == -1);
  CHECK(log->push(70, named(4)) == 0);  // a domain without a counter
  CHECK(log->push(70, named(5)) == 1);
  CHECK(log->pop(70, 4) == 1);
  CHECK(log->pop(70, 5) == 0);
  CHECK(log->pop(0, 6) == 1);
  CHECK(log->pop(0, 7) == 0);
  CHECK(log->pop(0, 8) == -1);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) == 5);
  CHECK(count(scratch.path, ChunkKind::open, RecordType::range) == 0);
  constexpr int kDeep = 5000;
  for (int i = 0; i < kDeep; ++i) {
    CHECK(log->push(0, named(6)) == i);
  }
  CHECK(count(scratch.path, ChunkKind::open, RecordType::range) == kDeep);
  for (int i = kDeep; i-- > 0;) {
    CHECK(log->pop(0, 9) == i);
  }
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) == 5 + kDeep);
}

// Operators find their ranges by an address, whatever was opened in them meanwhile.
void test_operators() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  const auto begin = [&](uint64_t address) {
    Label label = named(1);
    label.payload = address;
    log->push<RecordType::op>(1, label);
  };
  begin(100);
  begin(200);
  CHECK(log->push(0, named(2)) == 0);
  log->pop_op(300, 1, 7);  // it began before we listened
  CHECK(count(scratch.path, ChunkKind::records, RecordType::op) == 0);
  log->pop_op(100, 2, 7);  // out of order
  CHECK(count(scratch.path, ChunkKind::records, RecordType::op) == 1);
  CHECK(count(scratch.path, ChunkKind::open, RecordType::op) == 1);
  CHECK(log->pop(0, 3) == 0);
  log->pop_op(200, 4, 8);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::op) == 2);
  CHECK(count(scratch.path, ChunkKind::open, RecordType::op) == 0);
  begin(100);
  log->pop_op(100, 5, 9);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::op) == 3);
}

void test_start_end() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  std::vector<uint64_t> ids;
  for (int i = 0; i < 1000; ++i) {
    ids.push_back(process.start_range(*log, 0, named(1)));
    CHECK(ids.back() != 0);
  }
  CHECK(!process.end_range(*log, 0, 1));
  CHECK(!process.end_range(*log, uint64_t{7} << 40, 1));
  std::thread other([&] {
    ThreadLog *theirs = process.enter_thread();
    for (uint64_t id : ids) {
      CHECK(process.end_range(*theirs, id, clock_ns(CLOCK_MONOTONIC)));
      CHECK(!process.end_range(*theirs, id, 1));
    }
  });
  other.join();
  CHECK(count(scratch.path, ChunkKind::records, RecordType::start_end) == 1000);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::origin) == 1000);
  CHECK(count(scratch.path, ChunkKind::open, RecordType::start_end) == 0);
}

void test_strings() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  CHECK(process.intern("a") == 1);
  CHECK(process.intern("b") == 2);
  CHECK(process.intern("a") == 1);
  std::string accents;
  while (accents.size() < 2 * Names::kLongest) {
    accents += "\xc3\xa9";
  }
  uint32_t cut = process.intern("x" + accents);
  CHECK(cut == 3);
  CHECK(process.intern("x" + accents + "!") == cut);
  CHECK(process.domain("one") == 1);
  CHECK(process.domain("two") == 2);
  CHECK(process.domain("one") == 1);
}

void test_categories() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  MetaRecord record{};
  record.category = 7;
  for (int i = 0; i < 1000; ++i) {
    process.describe({RecordType::category, 0, 1, 5}, record);
  }
  process.describe({RecordType::category, 0, 2, 5}, record);
  process.describe({RecordType::category, 0, 1, 6}, record);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::category) == 3);
}

// Threads that come one after the other share chunks: the spool grows with what is written, not with their number.
void test_threads() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  for (int i = 0; i < 500; ++i) {
    ThreadLog *log = process.enter_thread();
    CHECK(log->index() == static_cast<uint32_t>(i));
    log->push(0, named(1));
    log->pop(0, 1);
    process.leave_thread(log);
  }
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) == 500);
  CHECK(count(scratch.path, ChunkKind::records, RecordType::thread) == 500);
  CHECK(process.file().header()->file_size.load() <= 512 << 10);
}

void test_no_space() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock) == 0);
  ThreadLog *log = process.enter_thread();
  rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  rlimit small{512 << 10, old.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  constexpr size_t kRanges = 100'000;
  for (size_t i = 0; i < kRanges; ++i) {
    CHECK(log->push(0, named(1)) == 0);
    CHECK(log->pop(0, 1) == 0);
  }
  size_t kept = count(scratch.path, ChunkKind::records, RecordType::range) + closed(scratch.path, 1);
  const FileHeader *header = process.file().header();
  CHECK(kept > 5000 && kept < kRanges);
  CHECK(kept + header->dropped[1].load() == kRanges);
  CHECK(header->error.load() == EFBIG);
  setrlimit(RLIMIT_FSIZE, &old);
  for (size_t i = 0; i < kRanges; ++i) {  // there is space again: it goes on
    log->push(0, named(1));
    log->pop(0, 1);
  }
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) > kept + kRanges / 2);
}

}  // namespace

int main() {
  test_clock();
  test_clock_of_days();
  test_stack();
  test_operators();
  test_start_end();
  test_strings();
  test_categories();
  test_threads();
  test_no_space();
  std::printf("spool: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
