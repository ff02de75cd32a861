// Windows of the capture: opening and closing, the records inside, and the marks that threads write.
#include <sys/mman.h>

#include <cerrno>
#include <memory>
#include <thread>

#include "spool/schemas/schema.h"
#include "spool/window.h"
#include "tests/scratch.h"

namespace {

// A separate control page, without a file.
struct Control {
  Control() : page(new (map_memory(kControlSize)) ControlPage{}) { page->clock = kClock; }
  ~Control() { unmap_memory(page, kControlSize); }
  CaptureWindow &window(size_t i) { return windows_of(page)[i]; }
  ControlPage *page;
};

uint64_t now() {
  return now_ns(kClock);
}

void test_opening() {
  Control control;
  CHECK(settle_windows(control.page) == 0);
  CHECK(close_window(control.page, Cause::command) == 0);
  uint64_t before = now();
  CHECK(open_window(control.page, Cause::start, 7) == 1);
  CHECK(open_window(control.page, Cause::command, 0) == 0);
  CHECK(control.page->gate.load() == 1);
  CHECK(control.window(0).open_ns.load() >= before && control.window(0).open_ns.load() <= now());
  CHECK(control.window(0).pid.load() == 7 && control.window(0).close_ns.load() == 0);
  CHECK(close_window(control.page, Cause::limit, 2) == 0);
  CHECK(close_window(control.page, Cause::limit, 1) == 1);
  CHECK(close_window(control.page, Cause::end) == 0);
  CHECK(control.window(0).closed_by.load() == static_cast<uint32_t>(Cause::limit));
  CHECK(control.window(0).close_ns.load() > control.window(0).open_ns.load());
  CHECK(open_window(control.page, Cause::nvtx, 0, 0, 1) == 2);  // each cause has its own limit
  CHECK(close_window(control.page, Cause::nvtx) == 2);
  CHECK(open_window(control.page, Cause::nvtx, 0, 0, 1) == 0);
  CHECK(open_window(control.page, Cause::command, 0, 0, 3) == 3);
}

// The process that moved the gate died before it took the time: the next one to look does.
void test_missing_times() {
  Control control;
  control.page->gate.store(1);
  CHECK(settle_windows(control.page) == 1);
  uint64_t open = control.window(0).open_ns.load();
  CHECK(open != 0);
  control.page->gate.store(2);
  CHECK(open_window(control.page, Cause::command, 0) == 2);
  CHECK(control.window(0).close_ns.load() > open);
  CHECK(control.window(1).open_ns.load() >= control.window(0).close_ns.load());
}

void test_room_for_no_more() {
  Control control;
  for (size_t i = 0; i < kWindows; ++i) {
    CHECK(open_window(control.page, Cause::command, 0) == static_cast<int64_t>(i + 1));
    CHECK(close_window(control.page, Cause::command) == static_cast<int64_t>(i + 1));
  }
  CHECK(open_window(control.page, Cause::command, 0) == -ENOSPC);
  CHECK(close_window(control.page, Cause::command) == 0);
  bool clipped = false;
  uint64_t last = control.window(kWindows - 1).open_ns.load();
  CHECK(window_around(control.page, last, last + 1, &clipped) == kWindows);
  control.page->gate.store(0xffffffff);  // nothing in it is trusted
  CHECK(open_window(control.page, Cause::command, 0) <= 0);
  CHECK(close_window(control.page, Cause::command) == 0);
  CHECK(window_around(control.page, last, last + 1, &clipped) == kWindows);
}

void test_around() {
  Control control;
  control.window(0).open_ns.store(100);
  control.window(0).close_ns.store(200);
  control.window(1).open_ns.store(300);
  control.page->gate.store(3);
  auto around = [&](uint64_t start, uint64_t end) {
    bool clipped = false;
    int number = static_cast<int>(window_around(control.page, start, end, &clipped));
    return clipped ? -number : number;
  };
  CHECK(around(10, 50) == 0 && around(10, 100) == 0 && around(200, 300) == 0 && around(210, 250) == 0);
  CHECK(around(10, 101) == -1 && around(100, 200) == 1 && around(150, 201) == -1 && around(10, 250) == -1);
  CHECK(around(100, 100) == 1 && around(200, 200) == 0 && around(199, 199) == 1 && around(99, 99) == 0);
  CHECK(around(150, 350) == -2 && around(250, 350) == -2 && around(300, 350) == 2 && around(10, 400) == -2);
  // The gate has moved, and nobody has taken the time yet: it will be later than what has ended.
  control.window(1).open_ns.store(0);
  CHECK(around(150, 250) == -1 && around(210, 250) == 0 && around(110, 120) == 1);
  control.window(1).open_ns.store(300);
  control.page->gate.store(2);
  control.window(0).close_ns.store(0);
  CHECK(around(150, 250) == 1 && around(10, 250) == -1);
}

// Threads open and close as they like: each window has one opener and one closer, and they do not overlap.
void test_many_at_once() {
  Control control;
  constexpr int kThreads = 4;
  std::atomic<uint32_t> opened{0};
  std::atomic<uint32_t> closed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1500; ++k) {
        opened += open_window(control.page, Cause::nvtx, 1) > 0 ? 1 : 0;
        closed += close_window(control.page, Cause::nvtx) > 0 ? 1 : 0;
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  CHECK(opened.load() == closed.load() && control.page->gate.load() == 2 * opened.load());
  uint64_t last = 0;
  for (uint32_t i = 0; i < opened.load(); ++i) {
    CHECK(control.window(i).open_ns.load() >= last);
    last = control.window(i).close_ns.load();
    CHECK(last > control.window(i).open_ns.load());
    CHECK(control.window(i).opened_by.load() == 3 && control.window(i).closed_by.load() == 3);
  }
}

void test_gate_of_a_thread() {
  Scratch scratch;
  Control control;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock, control.page) == 0);
  ThreadLog *log = process.enter_thread();
  auto written = [&](RecordType type) { return count(scratch.path, ChunkKind::records, type); };
  log->push(0, named(1));
  for (int i = 0; i < 1000; ++i) {
    CHECK(log->push(0, named(2)) == 1);
    CHECK(log->pop(0, now()) == 1);
    log->switch_task(static_cast<uint32_t>(i), now());
    CHECK(!log->records(now()));
    CHECK(log->operate(0, OperationAction::sync_releasing, 1, 0, now()));
    uint64_t id = process.start_range(*log, 0, named(3));
    CHECK(process.end_range(*log, id, now()));
  }
  CHECK(written(RecordType::range) + written(RecordType::start_end) + written(RecordType::task_switch) +
            written(RecordType::operation) ==
        0);
  CHECK(open_window(control.page, Cause::command, 0) == 1);
  CHECK(log->records(now()));
  CHECK(written(RecordType::task_switch) == 1);  // the last one
  log->switch_task(5, now());
  CHECK(written(RecordType::task_switch) == 2);
  CHECK(close_window(control.page, Cause::command) == 1);
  log->switch_task(6, now());
  CHECK(written(RecordType::task_switch) == 2);
  CHECK(log->pop(0, now()) == 0);  // it was there all the time
  CHECK(written(RecordType::range) == 1 && written(RecordType::task_switch) == 3);
  CHECK(log->pop(0, now()) == -1);
}

// Payloads of what is not recorded leave no traces, and those of what is stay.
void test_space_of_payloads() {
  Scratch scratch;
  Control control;
  Names names;
  ProcessLog process(names);
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", kClock, control.page) == 0);
  ThreadLog *log = process.enter_thread();
  char bytes[1000];
  std::memset(bytes, 7, sizeof(bytes));
  auto push = [&] {
    Label label;
    label.flags = kPayloadMask;
    {
      ThreadLog::Busy busy(*log);
      BlobLog::Blob first = log->write_blob({0, 0, 1, 0}, bytes, sizeof(bytes));
      first.head->next = log->write_blob({0, 0, 2, 0}, bytes, 100).offset;
      label.payload = first.offset;
    }
    log->push(0, label);
    return label.payload;
  };
  for (int i = 0; i < 10'000; ++i) {
    push();
    push();
    log->pop(0, now());
    log->pop(0, now());
  }
  std::vector<char> all;
  CHECK(chunks(scratch.path, all, ChunkKind::blobs).size() <= 3);
  push();
  uint64_t kept = push();
  open_window(control.page, Cause::command, 0);
  log->pop(0, now());
  close_window(control.page, Cause::command);
  log->pop(0, now());
  CHECK(count(scratch.path, ChunkKind::records, RecordType::range) == 2);
  chunks(scratch.path, all, ChunkKind::blobs);
  const auto *blob = reinterpret_cast<const BlobHead *>(all.data() + kept);
  CHECK(blob->size_plus_1 == 1001 && blob->schema == 1 && blob->next != 0);
  CHECK(reinterpret_cast<const BlobHead *>(all.data() + blob->next)->size_plus_1 == 101);
}

}  // namespace

int main() {
  test_opening();
  test_missing_times();
  test_room_for_no_more();
  test_around();
  test_many_at_once();
  test_gate_of_a_thread();
  test_space_of_payloads();
  std::printf("window: %d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
