// Signal handlers that annotate, at each instruction of the calls that they interrupt: nothing may be lost or written elsewhere.
#include <signal.h>
#include <ucontext.h>

#include <cstdint>
#include <memory>

#include "spool/schemas/schema.h"
#include "tests/scratch.h"

namespace {

constexpr uint32_t kOwn = 1;      // name of the thread's ranges
constexpr uint32_t kHandler = 2;  // of the handler's

enum class Call { pair, mark, operation, task, start_end };

ThreadLog *g_log = nullptr;
volatile int g_steps = 0;  // instructions until the handler annotates
volatile bool g_stepping = false;
int g_depth = 0;  // of its ranges
volatile int g_written = 0;
ClockParams g_clock;  // the quickest: fewer instructions to stop at

void annotate(int depth) {
  for (int i = 0; i < depth; ++i) {
    g_log->push(0, named(kHandler));
  }
  for (int i = 0; i < depth; ++i) {
    g_log->pop(0, 2);
  }
  g_written = g_written + depth;
}

#if defined(__x86_64__)
constexpr greg_t kTrap = 0x100;  // the flag that stops the program after each instruction

void on_step(int, siginfo_t *, void *context) {
  auto &flags = static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_EFL];
  if (!g_stepping) {
    flags &= ~kTrap;
    return;
  }
  flags |= kTrap;
  g_steps = g_steps - 1;
  if (g_steps == 0) {
    g_stepping = false;
    flags &= ~kTrap;
    annotate(g_depth);
  }
}
#else
void on_step(int, siginfo_t *, void *) {}
#endif

void make(Call call, ThreadLog &log, ProcessLog &process) {
  switch (call) {
    case Call::pair:
      log.push(0, named(kOwn));
      log.pop(0, 2);
      break;
    case Call::mark:
      log.append({RecordType::mark, 0, 0, kOwn}, 1, 1, named(kOwn));
      break;
    case Call::operation:
      log.operate(0, OperationAction::sync_releasing, 1, 1, 1);
      break;
    case Call::task:
      log.switch_task(7, 1);
      break;
    case Call::start_end: {
      uint64_t id = process.start_range(log, 0, named(kOwn), 1);
      process.end_range(log, id, 2);
    }
  }
}

size_t count_named(const std::string &path, uint32_t name) {
  std::vector<char> bytes;
  size_t n = 0;
  for (const ChunkHeader *chunk : chunks(path, bytes, ChunkKind::records)) {
    bool ended = false;
    bool after_range = false;
    for (size_t at = sizeof(ChunkHeader); at + sizeof(EventRecord) <= chunk->size;
         at += sizeof(EventRecord)) {
      const auto *record = reinterpret_cast<const EventRecord *>(reinterpret_cast<const char *>(chunk) + at);
      ended = ended || record->head.type == RecordType::none;
      CHECK(!ended || record->head.type == RecordType::none);
      CHECK(record->head.type != RecordType::origin || after_range);
      after_range = record->head.type == RecordType::start_end;
      bool counts = record->head.type == RecordType::range || record->head.type == RecordType::start_end ||
                    record->head.type == RecordType::mark;
      n += counts && record->head.name == name ? 1 : 0;
    }
  }
  return n;
}

// One call, interrupted after `steps` instructions, with room for `left` more records and `deeper` more open ranges. False when the
// call was over before.
bool interrupt(Call call, int steps, size_t left, size_t deeper, int depth) {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  const int failures = g_failures;
  CHECK(process.open(scratch.path, "{" + schema_json() + "}", g_clock) == 0);
  ThreadLog *log = process.enter_thread();
  const size_t records = ((16 << 10) - sizeof(ChunkHeader)) / sizeof(EventRecord);
  const size_t slots = (kPage - sizeof(ChunkHeader)) / sizeof(EventRecord) - 16;
  size_t before = records - left - 1;  // the thread's turn is a record, too
  for (size_t i = 0; i < before; ++i) {
    log->append({RecordType::mark, 0, 0, kOwn}, 1, 1, named(kOwn));
  }
  for (size_t i = deeper; i < slots; ++i) {
    log->push(0, named(kOwn));
  }
  g_log = log;
  g_depth = depth;
  g_written = 0;
  g_steps = steps;
  g_stepping = true;
  raise(SIGTRAP);
  make(call, *log, process);
  g_stepping = false;
  asm volatile("nop" ::: "memory");
  bool reached = g_written != 0;
  for (size_t i = deeper; i < slots; ++i) {
    CHECK(log->pop(0, 2) == static_cast<int>(slots - i) - 1);
  }
  CHECK(log->pop(0, 2) == -1);
  constexpr size_t kAfter = 500;
  for (size_t i = 0; i < kAfter; ++i) {
    log->push(0, named(kOwn));
    log->pop(0, 2);
  }
  bool counts = call != Call::operation && call != Call::task;
  size_t own = before + (slots - deeper) + kAfter + (counts ? 1 : 0);
  const FileHeader *header = process.file().header();
  uint64_t refused = header->dropped[kInSignal].load();  // while the thread was where locks are taken
  size_t found = count_named(scratch.path, kOwn);
  size_t handlers = count_named(scratch.path, kHandler);
  CHECK(found == own);
  CHECK(handlers + refused >= static_cast<size_t>(g_written) && handlers <= static_cast<size_t>(g_written));
  if (g_failures != failures) {
    std::fprintf(stderr, "call %d, step %d, left %zu, deeper %zu, depth %d: %zu of %zu, %zu of %d\n",
                 static_cast<int>(call), steps, left, deeper, depth, found, own, handlers, g_written);
  }
  return reached;
}

}  // namespace

int main() {
#if defined(__x86_64__)
  struct sigaction action{};
  action.sa_sigaction = on_step;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGTRAP, &action, nullptr);
  ClockKind kind = best_clock_kind();
  ClockSample early = sample_clocks(kind);
  usleep(1000);
  g_clock = calibrate(kind, early, sample_clocks(kind));
  // Each stop costs microseconds, and a call that is interrupted late has many: where locks are taken, not all are tried.
  const auto each = [](Call call, size_t left, size_t deeper, int depth) {
    for (int steps = 2; interrupt(call, steps, left, deeper, depth); steps += steps < 80 ? 1 : 23) {
    }
  };
  for (Call call : {Call::pair, Call::mark, Call::operation, Call::task, Call::start_end}) {
    each(call, 0, 5, 1);
  }
  each(Call::pair, 1, 5, 1);
  each(Call::pair, 2, 5, 3);
  each(Call::pair, 3, 0, 1);
  each(Call::pair, 3, 1, 1);
  each(Call::pair, 3, 2, 3);
#endif
  std::printf("%d checks, %d failures\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
