// Finds the task that a thread runs.
// An asyncio or trio task, or a generator with open ranges, by the agent's numbers.
//
// A library switches tasks by switching contexts, so while the thread's context version stays, so does its task. While
// generators have open ranges, the frames of the thread are looked through for them (see suspended.h).
#pragma once

#include <warplens/warplens.h>

#include "bindings/values/compat.h"
#include "frame.h"

namespace warplens::binding {

struct Open;

// An open range, as another one's parent.
struct RangePoint {
  uint64_t id = 0;         // 0: none
  uint32_t recording = 0;  // the one that `id` belongs to
  int32_t pushes = 0;      // push/pop ranges that were open on its thread
  uint64_t thread = 0;     // PyThreadState::id
};

// What can be interrupted and has ranges: a library's task, or a frame.
struct Owner {
  uint32_t number = 0;     // the agent's; made when first needed
  uint32_t recording = 0;  // the one that `number` holds in
  const char *library = nullptr;
  PyObject *name = nullptr;  // str or null, owned
  Open *top = nullptr;       // its open ranges, innermost first
  RangePoint parent;         // what was open where it was made
};

// What a thread told the agent last.
struct ThreadTask {
  uint64_t state;    // PyThreadState::id
  uint64_t told_at;  // the context version at which `told` is sure to be right, else kNever
  uint64_t seen_at;  // the context version at which `seen` is the library's task, else kNever
  uint64_t news;     // g_news at the last report
  Owner *seen;       // null: none
  uint32_t told;
  uint32_t recording;
  int32_t pushes;  // pushes less pops of this library; only differences count
  bool busy;
};
inline constexpr uint64_t kNever = ~uint64_t{0};
extern __thread ThreadTask t_task __attribute__((tls_model("initial-exec")));

// The agent's functions, null while it does not listen or is another tool.
extern std::atomic<const WarplensTasks *> g_tasks;

// Frames that are Owners now.
extern std::atomic<int> g_suspended;

// Grows when what other threads told may be wrong from now on: a tool has attached, a frame has become an Owner.
extern std::atomic<uint64_t> g_news;

// The number of the agent's recording; never null.
extern std::atomic<const uint32_t *> g_recording;
inline uint32_t recording() {
  return *static_cast<const volatile uint32_t *>(g_recording.load(std::memory_order_relaxed));
}

bool init_tasks();

// A tool has attached that was announced as `library`.
void find_tasks(const char *library);

const WarplensTasks *ask_for_tasks();
extern std::atomic<bool> g_tasks_later;  // the agent listens, but was not recording when asked

inline const WarplensTasks *agent_tasks() {
  const WarplensTasks *tasks = g_tasks.load(std::memory_order_acquire);
  return tasks == nullptr && g_tasks_later.load(std::memory_order_relaxed) ? ask_for_tasks() : tasks;
}

void tell_task_slowly(PyThreadState *state);

// Before anything that belongs to a thread is sent (push, pop, mark, sample, …): the agent then knows the task.
inline void tell_task(PyThreadState *state = thread_state()) {
  const ThreadTask &t = t_task;
  if (t.told_at != state->context_ver || t.state != state->id ||
      t.news != g_news.load(std::memory_order_relaxed) || t.recording != recording()) [[unlikely]] {
    tell_task_slowly(state);
  }
}

// The library's task that the thread runs, or null. Calls Python; no exception may be set.
Owner *library_task(PyThreadState *state);

// What keeps a library's task's Owner alive. Borrowed.
PyObject *keeper_of(Owner *owner);

// The task's number in the present recording; 0 for null. Makes it where there is none.
uint32_t number_of(Owner *owner, const WarplensTasks *tasks);

// The range that new tasks of the context that runs will be part of. New reference or null; no exception may be set.
Open *context_range();
void set_context_range(Open *range);

// Forgets what the thread knows, where another thread state or recording has come. Before the functions above.
void refresh(PyThreadState *state);

}  // namespace warplens::binding
