// Operators while windows open and close, on a look-alike of PyTorch's list of callbacks.
// The thread sanitizer runs it, too (test_native_units.py): threads begin and end operators while the list changes.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "agent/session.h"
#include "agent/source.h"
#include "agent/sources/torch/ops.h"
#include "agent/sources/torch/windows.h"
#include "spool/schemas/schema.h"
#include "spool/window.h"
#include "tests/scratch.h"

// What PyTorch calls a record.
struct warplens::TorchRecord {
  const char *name;
  int64_t sequence;
};

namespace {

// PyTorch's list: guarded by a lock, read again by a thread when its version has changed.
std::mutex g_lock;
std::vector<std::pair<uint64_t, TorchCallback>> g_callbacks;
std::atomic<uint64_t> g_version{1};

uint64_t add_callback(TorchCallback callback) {
  std::lock_guard lock(g_lock);
  g_callbacks.emplace_back(g_version.fetch_add(1), callback);
  return g_callbacks.back().first;
}

void remove_callback(uint64_t handle) {
  std::lock_guard lock(g_lock);
  std::erase_if(g_callbacks, [handle](const auto &one) { return one.first == handle; });
  g_version.fetch_add(1);
}

std::vector<TorchCallback> observers(TorchScope scope) {
  thread_local uint64_t version = 0;
  thread_local std::vector<TorchCallback> known;
  if (version != g_version.load()) {
    std::lock_guard lock(g_lock);
    version = g_version.load();
    known.clear();
    for (const auto &[handle, callback] : g_callbacks) {
      known.push_back(callback);
    }
  }
  std::vector<TorchCallback> found;
  for (const TorchCallback &callback : known) {
    if (callback.scopes[static_cast<size_t>(scope)]) {
      found.push_back(callback);
    }
  }
  return found;
}

template <typename Body>
void operate(TorchScope scope, const char *name, const Body &body) {
  const auto callbacks = observers(scope);
  TorchRecord record{name, 7};
  std::vector<std::unique_ptr<TorchContext>> contexts;
  for (const TorchCallback &callback : callbacks) {
    contexts.push_back(callback.start(record));
  }
  body();
  for (size_t i = 0; i < callbacks.size(); ++i) {
    callbacks[i].end(record, contexts[i].get());
  }
}

constexpr auto kNothing = [] {};

agent::torch::Library library() {
  agent::torch::Library found{};
  found.name = [](const TorchRecord *record) { return record->name; };
  found.is_async = [](const TorchRecord *record) { return std::strcmp(record->name, "async") == 0; };
  found.add_callback = add_callback;
  found.remove_callback = remove_callback;
  found.sequence_at = offsetof(TorchRecord, sequence);
  return found;
}

ControlPage *g_control = nullptr;
ProcessLog *g_process = nullptr;
std::mutex g_entering;
std::vector<std::thread> g_own;

}  // namespace

// What the sources have of the agent around them.
namespace warplens::agent {

__thread ThreadLog *t_log = nullptr;
Life g_alive{{1}, {1}};
Life *g_life = &g_alive;

ThreadLog *enter() {
  std::lock_guard lock(g_entering);
  t_log = g_process->enter_thread();
  return t_log;
}

ControlPage *control_page() {
  return g_control;
}

bool is_cpu_over() {
  return false;
}

bool start_own_thread(const char *, void (*body)(void *), void *argument) {
  g_own.emplace_back(body, argument);
  return true;
}

}  // namespace warplens::agent

namespace {

constexpr int kWindowsOpened = 60;
constexpr int kInside = 20;

bool open() {
  const bool opened = open_window(g_control, Cause::command, 1) > 0;
  agent::torch::wait_for_callbacks();
  return opened;
}

void close() {
  CHECK(close_window(g_control, Cause::command) > 0);
}

// By its text, how many operators a reader finds: finished ones, and those that are open.
std::map<std::string, size_t> recorded(const std::string &path, ChunkKind kind) {
  std::vector<char> bytes;
  std::map<std::string, size_t> found;
  for (const ChunkHeader *chunk : chunks(path, bytes, kind)) {
    for (size_t at = sizeof(ChunkHeader); at + chunk->stride <= chunk->size; at += chunk->stride) {
      const auto *head = reinterpret_cast<const RecordHead *>(reinterpret_cast<const char *>(chunk) + at);
      if (head->type == RecordType::op || head->type == RecordType::start_end) {
        ++found[std::string(g_process->text(head->name))];
      }
    }
  }
  return found;
}

// Other threads begin and end operators while the main thread opens and closes windows.
void test_windows_beside_operators() {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 3; ++number) {
    threads.emplace_back([&stop, &rounds] {
      while (!stop.load()) {
        operate(TorchScope::function, "outer", [] {
          operate(TorchScope::backward, "inner", kNothing);
          operate(TorchScope::user, "async", kNothing);
        });
        rounds.fetch_add(1);
      }
    });
  }
  for (int window = 0; window < kWindowsOpened; ++window) {
    operate(TorchScope::function, "outside", kNothing);
    CHECK(open());
    for (uint64_t before = rounds.load(); rounds.load() < before + 6;) {  // some of them begin and end in it
      std::this_thread::yield();
    }
    for (int i = 0; i < kInside; ++i) {
      operate(TorchScope::function, "inside", kNothing);
    }
    operate(TorchScope::function, "ends later", close);
  }
  stop.store(true);
  for (std::thread &thread : threads) {
    thread.join();
  }
}

// A child must be able to change PyTorch's list: no thread of ours had its lock when the process was copied.
void test_forks_beside_windows() {
#if !defined(__SANITIZE_THREAD__)
  for (int round = 0; round < 40; ++round) {
    CHECK(round % 2 == 0 ? open_window(g_control, Cause::command, 1) > 0
                         : close_window(g_control, Cause::command) > 0);
    const pid_t child = fork();
    if (child == 0) {
      _exit(g_lock.try_lock() ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
#endif
}

}  // namespace

int main() {
  Scratch scratch;
  Names names;
  ProcessLog process(names);
  g_process = &process;
  g_control = new (map_memory(kControlSize)) ControlPage{};
  g_control->clock = kClock;
  CHECK(process.open(scratch.path, "{" + schema_json() + ", " + wide_schema_json() + "}", kClock,
                     g_control) == 0);
  agent::torch::begin_ops(library(), 0, false);
  agent::torch::follow_windows();
  test_windows_beside_operators();
  test_forks_beside_windows();
  agent::torch::stop_following();
  for (std::thread &thread : g_own) {
    thread.join();
  }
  auto found = recorded(scratch.path, ChunkKind::records);
  CHECK(found["inside"] > 0 && found["inside"] <= kWindowsOpened * kInside);
  CHECK(found["ends later"] > 0 && found["ends later"] <= kWindowsOpened);
  CHECK(found["outer"] > 0 && found["inner"] > 0 && found["async"] > 0);
  CHECK(found.count("outside") == 0);
  CHECK(recorded(scratch.path, ChunkKind::open).empty());
  std::printf("%d checks, %d failed\n", g_checks, g_failures);
  return g_failures == 0 ? 0 : 1;
}
