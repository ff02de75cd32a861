// Limits of the spool's writer: how much all files of a run may take, what a full disk leaves.
#include <sys/mman.h>

#include <memory>

#include "spool/schemas/schema.h"
#include "spool/window.h"
#include "tests/scratch.h"

namespace {

// A control page as agents see it.
struct Control {
  Control() : page(new (map_memory(kControlSize)) ControlPage{}) {
    windows_of(page)->open_ns.store(1);
    page->gate.store(1);
  }
  ~Control() { unmap_memory(page, kControlSize); }
  ControlPage *page;
};

void test_max_size() {
  Scratch scratch;
  Control control;
  control.page->max_bytes = 900 << 10;
  Names names;
  {
    ProcessLog process(names);
    CHECK(process.open(scratch.path, "{}", kClock, control.page) == 0);
    ThreadLog *log = process.enter_thread();
    constexpr size_t kRanges = 100'000;
    for (size_t i = 0; i < kRanges; ++i) {
      log->push(0, named(1));
      log->pop(0, now_ns(kClock));
    }
    const FileHeader *header = process.file().header();
    size_t kept = count(scratch.path, ChunkKind::records, RecordType::range) + closed(scratch.path, 1);
    CHECK(kept > 15'000 && kept + header->dropped[1].load() == kRanges);
    CHECK(header->error.load() == kMaxSizeReached);
    CHECK(header->file_size.load() == control.page->bytes.load());
    CHECK(control.page->bytes.load() <= control.page->max_bytes);
    CHECK(control.page->bytes.load() + kPage > control.page->max_bytes);
    CHECK(control.page->over.load() > 0);
  }
  SpoolFile second;
  uint64_t over = control.page->over.load();
  CHECK(second.create(scratch.directory + "/second.spool", "{}", kClock, control.page) == kMaxSizeReached);
  CHECK(control.page->over.load() == over + 1);
  CHECK(access((scratch.directory + "/second.spool").c_str(), F_OK) != 0);
}

// A full disk costs many short ranges, and none of the long ones around them.
void test_full_disk_keeps_outer_ranges() {
  Scratch scratch;
  Control control;
  control.page->max_bytes = 300 << 10;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{}", kClock, control.page) == 0);
  ThreadLog *log = process.enter_thread();
  for (uint32_t name = 10; name < 14; ++name) {
    log->push(0, named(name));
  }
  uint64_t outer = process.start_range(*log, 0, named(14));
  constexpr size_t kRanges = 20'000;
  for (size_t i = 0; i < kRanges; ++i) {
    log->push(0, named(1));
    log->pop(0, now_ns(kClock));
    uint64_t id = process.start_range(*log, 0, named(2));
    CHECK(process.end_range(*log, id, now_ns(kClock)));
  }
  CHECK(process.file().header()->dropped[1].load() > 0);
  for (int i = 0; i < 4; ++i) {
    log->pop(0, now_ns(kClock));
  }
  CHECK(process.end_range(*log, outer, now_ns(kClock)));
  CHECK(!process.end_range(*log, outer, now_ns(kClock)));
  for (uint32_t name = 10; name < 15; ++name) {
    CHECK(closed(scratch.path, name) == 1);
  }
  const FileHeader *header = process.file().header();
  size_t pushed = count(scratch.path, ChunkKind::records, RecordType::range) + closed(scratch.path, 1);
  CHECK(pushed + header->dropped[1].load() == kRanges);
  size_t started = count(scratch.path, ChunkKind::records, RecordType::start_end) + closed(scratch.path, 2);
  CHECK(started + header->dropped[2].load() == kRanges);
  Inherited inherited = process.inherited(log);
  CHECK(inherited.stack.empty() && inherited.ranges.empty());
  process.leave_thread(log);
  log = process.enter_thread();
  log->push(0, named(3));
  CHECK(closed(scratch.path, 10) == 1);
}

}  // namespace

int main() {
  test_full_disk_keeps_outer_ranges();
  test_max_size();
  std::printf("limits: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
