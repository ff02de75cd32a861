// Holds the agent's state of each Python thread.
// The entry of an ended thread is used again by the next one.
//
// The protocol. The list only grows: a Thread is pushed once, by a compare-exchange of the head, and
// `next` never changes, so readers walk it without a lock. An ended thread's entry is marked not
// `taken`, and one new thread wins it by an exchange.
#include "threads.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace warplens::agent::python {

__thread Thread *t_python = nullptr;
std::atomic<Thread *> g_threads{nullptr};

namespace {

void (*g_leave)(Thread &thread);
pthread_key_t g_key;
bool g_has_key = false;

void leave(void *opaque) {
  auto *thread = static_cast<Thread *>(opaque);
  if (t_python != thread) {
    return;  // of the parent
  }
  g_leave(*thread);
  t_python = nullptr;
  thread->number = 0;
  thread->taken.store(false, std::memory_order_release);
}

Thread *reuse() {
  for (Thread *thread = g_threads.load(std::memory_order_acquire); thread != nullptr; thread = thread->next) {
    bool free = false;
    if (!thread->taken.load(std::memory_order_relaxed) &&
        thread->taken.compare_exchange_strong(free, true, std::memory_order_acq_rel)) {
      return thread;
    }
  }
  return nullptr;
}

Thread *make() {
  auto *thread = new (std::nothrow) Thread;
  if (thread != nullptr) {
    thread->taken.store(true, std::memory_order_relaxed);
    thread->next = g_threads.load(std::memory_order_relaxed);
    while (!g_threads.compare_exchange_weak(thread->next, thread, std::memory_order_acq_rel)) {
    }
  }
  return thread;
}

void clear(Thread &thread) {
  thread.number = static_cast<uint32_t>(syscall(SYS_gettid));
  thread.held_since.store(0, std::memory_order_relaxed);
  thread.waits_since.store(0, std::memory_order_relaxed);
  thread.import = nullptr;
  thread.task_since = 0;
  forget_calls(thread);
  thread.brief_start = thread.held_ns = thread.waited_ns = 0;
  thread.holds = thread.waits = 0;
}

}  // namespace

Thread *enter_thread() {
  int saved = errno;
  Thread *thread = reuse();
  thread = thread != nullptr ? thread : make();
  if (thread != nullptr) {
    clear(*thread);
    t_python = thread;
    if (g_has_key) {
      pthread_setspecific(g_key, thread);
    }
  }
  errno = saved;
  return thread;
}

void begin_threads(void (*leave_thread)(Thread &thread)) {
  g_leave = leave_thread;
  g_has_key = pthread_key_create(&g_key, leave) == 0;
}

void begin_threads_child() {
  for_each_thread([](Thread &thread) {
    if (&thread != t_python) {
      thread.taken.store(false, std::memory_order_relaxed);
    }
  });
  if (t_python != nullptr) {
    clear(*t_python);
  }
}

}  // namespace warplens::agent::python
