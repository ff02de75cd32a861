// State of the agent. Whatever fails here turns the agent off for good and is counted on the launcher's page.
#include "session.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <string>

#include "facts.h"
#include "source.h"
#include "spool/schema.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace warpline::agent {

__thread ThreadLog *t_log = nullptr;
ProcessLog *g_process = nullptr;

namespace {

// Everything the agent knows about this process; never freed, because other threads may record until the very end.
struct State {
  std::mutex mutex;
  std::string directory;
  ClockParams clock{ClockKind::monotonic, 0, 0, 0, 1};
  ControlPage *control = nullptr;
  pthread_key_t key{};
  bool has_key = false;
  std::atomic<bool> off{false};
  std::atomic<uint32_t> *same_process = nullptr;
  // Set by fork in the child, used when it records its first event.
  ProcessLog *parent = nullptr;
  Inherited inherited;
  uint64_t fork_ns = 0;
};

// In static storage and never destroyed: exit handlers of the program may still record after ours ran.
alignas(State) char g_storage[sizeof(State)];
State *g_state = nullptr;
std::once_flag g_once;
std::atomic<uint32_t> g_always_same{1};
__thread bool t_entering = false;

void leave(void *log) {
  auto *mine = static_cast<ThreadLog *>(log);
  if (g_process != nullptr && mine->process() == g_process && g_same_process->load() != 0) {
    t_log = nullptr;
    g_process->leave_thread(mine);
  }
}

// The child of a fork: the parent's spool is not mapped here, its locks may be held by threads that do not exist.
void become_child() {
  new (&g_state->mutex) std::mutex;
  t_log = nullptr;
  if (g_process != nullptr) {
    g_state->parent = g_process;
    g_process = nullptr;
  }
  g_state->fork_ns = now_ns(g_state->clock);
  if (g_state->same_process != nullptr) {
    g_state->same_process->store(1);
  }
}

void before_fork() {
  if (g_state == nullptr) {
    return;
  }
  g_state->mutex.lock();
  if (g_process != nullptr) {
    g_process->lock_for_fork();
    g_state->inherited = g_process->inherited(t_log);
  }
}

void after_fork_parent() {
  if (g_state == nullptr) {
    return;
  }
  if (g_process != nullptr) {
    g_process->unlock_after_fork();
  }
  g_state->mutex.unlock();
}

void after_fork_child() {
  if (g_state != nullptr) {
    become_child();
  }
}

void open_control(State &state) {
  std::string path = state.directory + "/control";
  int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return;  // no launcher: the plain clock, and nobody to report to
  }
  off_t size = lseek(fd, 0, SEEK_END);
  void *page = size < static_cast<off_t>(sizeof(ControlPage))
                   ? MAP_FAILED
                   : mmap(nullptr, sizeof(ControlPage), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) {
    return;
  }
  auto *control = static_cast<ControlPage *>(page);
  if (std::memcmp(control->magic, kControlMagic, sizeof(kControlMagic)) != 0 ||
      control->version != kSpoolVersion) {
    munmap(page, sizeof(ControlPage));
    return;
  }
  state.control = control;
  state.clock = control->clock;
}

void start_once() {
  const char *directory = secure_getenv("WARPLINE_SPOOL");
  if (directory == nullptr || *directory == '\0') {
    return;
  }
  auto *state = new (g_storage) State;
  state->directory = directory;
  open_control(*state);
  g_same_process = &g_always_same;
  void *page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) {
    if (madvise(page, kPage, MADV_WIPEONFORK) == 0) {
      state->same_process = new (page) std::atomic<uint32_t>(1);
      g_same_process = state->same_process;
    } else {
      munmap(page, kPage);
    }
  }
  state->has_key = pthread_key_create(&state->key, leave) == 0;
  g_state = state;
  pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void turn_off(State &state, int error) {
  state.off.store(true);
  if (state.control != nullptr) {
    uint32_t none = 0;
    state.control->error.compare_exchange_strong(none, static_cast<uint32_t>(error));
    state.control->failed.fetch_add(1);
  }
}

// Several programs can run one after the other under the same pid (exec): each has its own spool.
int open_spool(State &state, ProcessLog &process) {
  std::string base = state.directory + "/" + process_name();
  std::string json = "{" + process_json(now_ns(state.clock), state.parent != nullptr ? state.fork_ns : 0) +
                     ", " + schema_json() + "}";
  for (int i = 0; i < 1000; ++i) {
    int error = process.open(base + (i == 0 ? "" : "-" + std::to_string(i)) + ".spool", json, state.clock);
    if (error != EEXIST) {
      return error;
    }
  }
  return EEXIST;
}

// [MT] The process's log, opened now if need be; null when that fails.
ProcessLog *start(State &state, bool &first) {
  std::lock_guard lock(state.mutex);
  if (g_process != nullptr || state.off.load()) {
    return g_process;
  }
  auto *process = new (std::nothrow) ProcessLog;
  int error = process == nullptr ? ENOMEM : open_spool(state, *process);
  if (error != 0) {
    turn_off(state, error);
    delete process;
    return nullptr;
  }
  if (state.control != nullptr) {
    state.control->processes.fetch_add(1);
  }
  if (state.parent != nullptr) {
    process->adopt_names(*state.parent);
  }
  first = true;
  g_process = process;
  return process;
}

ThreadLog *lost() {
  if (g_state != nullptr && g_state->control != nullptr) {
    g_state->control->lost.fetch_add(1, std::memory_order_relaxed);
  }
  return nullptr;
}

}  // namespace

const std::atomic<uint32_t> *g_same_process = &g_always_same;

bool prepare() {
  std::call_once(g_once, start_once);
  return g_state != nullptr;
}

ThreadLog *enter() {
  State *state = g_state;
  if (state == nullptr) {
    return nullptr;
  }
  if (t_entering) {
    return lost();  // a signal handler, while the thread it interrupted is here
  }
  t_entering = true;
  int saved = errno;
  if (g_same_process->load() == 0) {
    become_child();
    state->inherited = {};  // of another moment: nobody told us about this fork
  }
  bool first = false;
  ProcessLog *process = nullptr;
  try {
    process = state->off.load(std::memory_order_relaxed) ? nullptr : start(*state, first);
  } catch (...) {
    turn_off(*state, ENOMEM);
  }
  ThreadLog *log = process == nullptr ? nullptr : process->enter_thread();
  if (log != nullptr) {
    if (first && state->parent != nullptr) {
      bool forked_here = syscall(SYS_gettid) == getpid();
      process->adopt_ranges(*state->parent, state->inherited, forked_here ? log : nullptr, state->fork_ns);
      state->parent = nullptr;
      state->inherited = {};
    }
    t_log = log;
    if (state->has_key) {
      pthread_setspecific(state->key, log);
    }
  }
  errno = saved;
  t_entering = false;
  return log != nullptr ? log : lost();
}

// The end of an orderly process; recording goes on for those who run after us.
__attribute__((destructor)) static void at_exit() {
  if (g_process != nullptr && g_same_process->load() != 0) {
    g_process->file().header()->end_ns.store(now_ns(g_process->clock()));
  }
}

}  // namespace warpline::agent
