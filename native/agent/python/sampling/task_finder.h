// Finds asyncio's live tasks in memory.
// From 3.14 on each thread has a list of them, before that one WeakSet has those of all threads.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/python/memory/layout.h"

namespace warplens::agent {

// What the memory of a task looks like: found in the first one that is seen, as no header says it.
struct TaskLayout {
  uint32_t coroutine =
      0;              // offset; 0 = not known. What it waits for is right before it, its name right behind it
  uint32_t link = 0;  // of the list of a thread's tasks
};

class TaskFinder {
 public:
  static constexpr size_t kMostTasks = 16384;  // those beyond are not looked at
  explicit TaskFinder(const PythonRuntime &python) : python_(python) {}

  //! Addresses of what may be tasks: each has to be looked at. `thread`: its state; `globals`: of a module asyncio.base_events. Throws
  //! bad_alloc.
  void find(uintptr_t thread, uintptr_t globals, std::vector<uintptr_t> &tasks);

  //! Whether that is the type of tasks, or one below it.
  bool is_task_type(uintptr_t type);

  //! Whether it is the type of futures, or one below it; tasks are others.
  bool is_future_type(uintptr_t type);

  //! Learns anew what a task looks like.
  void forget() { layout_ = {}, list_ = 0; }

  //! Known once a task was seen.
  const TaskLayout &layout() const { return layout_; }

 private:
  enum class Kind : uint8_t { other, future, task };

  Kind kind_of(uintptr_t type);
  uintptr_t find_set(uintptr_t globals);
  uintptr_t set_in(uintptr_t weak_set) const;
  uintptr_t in_dict(uintptr_t dict, std::string_view name) const;
  void of_set(uintptr_t set, std::vector<uintptr_t> &tasks);
  uint32_t find_list(uintptr_t thread);
  uint32_t link_in_task(uintptr_t link);
  void of_list(uintptr_t thread, std::vector<uintptr_t> &tasks);
  bool learn(uintptr_t task);

  const PythonRuntime &python_;
  TaskLayout layout_;
  std::unordered_map<uintptr_t, Kind> types_;
  std::unordered_map<uintptr_t, uintptr_t> sets_;  // by globals
  uint32_t list_ = 0;                              // in a thread's state; 0 = not known
  std::vector<uintptr_t> words_;
};

}  // namespace warplens::agent
