// Holds the agent's state of each Python thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

namespace warplens::agent::python {

// An import that runs.
struct Import {
  const Import *outer;
  std::string_view name;
};

struct Calls;
struct Thread;
//! What ran in it is over: it ends.
void forget_calls(Thread &thread);

// Changed by its thread alone; when the process ends, the thread that ends it looks at those of the others.
struct Thread {
  uint32_t number = 0;  // the system's; 0: nobody uses it
  std::atomic<bool> taken{false};
  Thread *next = nullptr;  // of all there are; never changed

  const Import *import = nullptr;  // the innermost that runs
  Calls *calls = nullptr;          // those that are traced and run; null before the first
  uint64_t task_since = 0;         // 0: none runs
  uint32_t task = 0;               // text
  uint32_t task_gate = 0;

  // Of the GIL. Times are 0 where it does not hold it, or wait for it.
  std::atomic<uint64_t> held_since{0};
  std::atomic<uint64_t> waits_since{0};
  uint32_t gate = 0;  // when it was taken
  uint32_t interpreter = 0;
  // Brief ones that are not written yet.
  uint64_t brief_start = 0;
  uint64_t brief_end = 0;
  uint64_t held_ns = 0;
  uint64_t waited_ns = 0;
  uint32_t holds = 0;
  uint32_t waits = 0;
};

extern __thread Thread *t_python;

//! The calling thread's; null when memory is out.
Thread *enter_thread();

inline Thread *this_thread() {
  Thread *thread = t_python;
  return thread != nullptr ? thread : enter_thread();
}

//! `leave` is called by each thread that ends.
void begin_threads(void (*leave)(Thread &thread));

//! [FORK] In the child: only the calling thread is left.
void begin_threads_child();

extern std::atomic<Thread *> g_threads;

template <typename Each>
void for_each_thread(const Each &each) {
  for (Thread *thread = g_threads.load(std::memory_order_acquire); thread != nullptr; thread = thread->next) {
    if (thread->taken.load(std::memory_order_acquire)) {
      each(*thread);
    }
  }
}

}  // namespace warplens::agent::python
