// Prepares, starts and ends the agent in one process.
// Any failure here turns the agent off and is counted on the launcher's page.
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
#include <string_view>
#include <utility>

#include "attached.h"
#include "facts.h"
#include "heap.h"
#include "hooks/intrakernel.h"
#include "session_hook.h"
#include "source.h"
#include "spool/schemas/schema.h"
#include "spool/system/helpers.h"
#include "spool/system/uncancelled.h"
#include "spool/window.h"
#include "stacks.h"
#include "watch.h"

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

namespace warplens::agent {

__thread ThreadLog *t_log = nullptr;
__thread Lane *t_lane = nullptr;

namespace {

constexpr unsigned kLastKernelsMs = 10'000;
constexpr ClockParams kPlainClock{ClockKind::monotonic, 0, 0, 0, 1};

enum class Mode : uint32_t {
  idle,       // nothing is to be recorded
  recording,  // a recording runs, or begins with the next event
  failed      // it could not begin: events are counted as lost
};

// Memory of a thread's log that no thread uses any more.
struct Spare {
  Spare *next;
};

// Everything the agent knows about this process; never freed, because other threads may record until the very end.
struct State {
  std::mutex mutex;
  std::atomic<long> pid{0};
  const char *directory = nullptr;  // replaced as a whole: a fork may come at any time
  bool launched = false;            // by a launcher: it records for as long as it lives
  std::atomic<Mode> mode{Mode::idle};
  std::atomic<const ClockParams *> clock{&kPlainClock};  // an earlier one may still be in use
  std::atomic<ControlPage *> control{nullptr};
  ProcessLog *process = nullptr;  // null before the first event
  uint32_t generation = 0;        // of the last recording
  uint32_t last_turn = 0;         // of its start/end ranges
  Spare *spares = nullptr;
  pthread_key_t key{};
  bool has_key = false;
  bool wiped_on_fork = false;
  Names names;
  // Set by fork in the child, used when it records its first event.
  bool forked = false;
  Inherited inherited;
  uint64_t fork_ns = 0;
};

// In static storage and never destroyed: exit handlers of the program may still record after ours ran.
alignas(State) char g_storage[sizeof(State)];
State *g_state = nullptr;
std::once_flag g_once;
Life g_static_life{0, 1};
std::atomic<uint32_t> g_chained{0};
std::atomic<uint32_t> g_not_chained{0};
// The log of this thread's recording before last: no frame of the thread that a signal interrupted can still be using it.
__thread ThreadLog *t_spare = nullptr;
// On the forking thread, between the handlers of a fork.
__thread Inherited *t_inherited = nullptr;

// Values of Life::same_process in a child; a child of a raw clone may have several threads before the first one gets here.
constexpr uint32_t kUnnoticed = 0;
constexpr uint32_t kBeingNoticed = 2;

bool forked_unnoticed() {
  return g_life->same_process.load(std::memory_order_relaxed) != 1;
}

void keep_spare(State &state, ThreadLog *log) {
  if (log != nullptr) {
    state.spares = new (log) Spare{state.spares};
  }
}

ThreadLog *take_spare(State &state) {
  ThreadLog *spare = t_log != nullptr ? std::exchange(t_spare, t_log) : nullptr;
  if (spare == nullptr && state.spares != nullptr) {
    spare = reinterpret_cast<ThreadLog *>(std::exchange(state.spares, state.spares->next));
  }
  return spare;
}

void leave(void *) {
  Busy busy;  // a handler that annotates now must not make another log, or wait for our locks
  State &state = *g_state;
  if (!busy || forked_unnoticed()) {
    return;
  }
  close_for_thread();
  ThreadLog *log = std::exchange(t_log, nullptr);
  Lane *lane = std::exchange(t_lane, nullptr);
  std::lock_guard lock(state.mutex);
  if (lane != nullptr && state.process != nullptr && lane->generation() == state.process->generation()) {
    state.process->leave_lane(lane);
  }
  if (log != nullptr && log->process() == state.process) {
    state.process->leave_thread(log);
  } else {
    keep_spare(state, log);
  }
  keep_spare(state, std::exchange(t_spare, nullptr));
}

// The child of a fork: the parent's spool is not mapped here, its locks may be held by threads that do not exist, and what
// those were changing may be in any state.
void become_child(State &state) {
  new (&state.mutex) std::mutex;
  state.pid.store(syscall(SYS_getpid));
  state.names.become_child();
  renew_heap();
  renew_attached();
  stop_closing();
  forget_helpers();
  abandon_intrakernel();
  renew_stacks();
  for_each_hook<&SessionHook::abandon>();
  state.spares = nullptr;
  t_lane = nullptr;
  t_spare = std::exchange(t_log, nullptr);
  if (state.process != nullptr) {
    state.fork_ns = now_ns(*state.clock.load());
    state.process->file().become_child();
    state.last_turn = state.process->last_turn();
    state.process = nullptr;
    // In place: what was there may be half changed, and its memory in use already.
    new (&state.inherited) Inherited(t_inherited != nullptr ? std::move(*t_inherited) : Inherited{});
    state.forked = true;
  }
  g_life->generation.store(0);
  g_life->same_process.store(1);
}

// False while another thread of the child is at it.
bool notice_fork(State &state) {
  uint32_t unnoticed = kUnnoticed;
  if (g_life->same_process.compare_exchange_strong(unnoticed, kBeingNoticed)) {
    become_child(state);
    return true;
  }
  return unnoticed == 1;
}

// No lock is held while the process forks: other libraries' handlers run then, and may wait for threads that annotate.
void before_fork() {
  Busy busy;
  State &state = *g_state;
  if (!busy || forked_unnoticed()) {
    return;
  }
  try {
    std::lock_guard lock(state.mutex);
    if (state.process != nullptr) {
      bool current = t_log != nullptr && t_log->process() == state.process;
      t_inherited = new Inherited(state.process->inherited(current ? t_log : nullptr));
    }
  } catch (...) {
    // Out of memory: the child starts without open ranges.
  }
}

void after_fork_parent() {
  Busy busy;
  delete std::exchange(t_inherited, nullptr);
}

void after_fork_child() {
  Busy busy;
  if (!g_state->wiped_on_fork) {
    become_child(*g_state);
  } else if (forked_unnoticed()) {
    notice_fork(*g_state);
  }
  t_inherited = nullptr;
  for_each_hook<&SessionHook::begin_child>();
}

void open_control(State &state) {
  state.control.store(nullptr);
  state.clock.store(&kPlainClock);
  std::string path = std::string(state.directory) + "/control";
  int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return;  // no launcher: the plain clock, and nobody to report to
  }
  off_t size = lseek(fd, 0, SEEK_END);
  void *page = size < static_cast<off_t>(kControlSize)
                   ? MAP_FAILED
                   : mmap(nullptr, kControlSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (page == MAP_FAILED) {
    return;
  }
  auto *control = static_cast<ControlPage *>(page);
  if (std::memcmp(control->magic, kControlMagic, sizeof(kControlMagic)) != 0 ||
      control->version != kControlVersion) {
    munmap(page, kControlSize);
    return;
  }
  if (can_write(control)) {
    control->chained.fetch_add(g_chained.load());
    control->not_chained.fetch_add(g_not_chained.load());
  }
  state.clock.store(new ClockParams(control->clock));
  state.control.store(control);
}

void set_directory(State &state, std::string_view directory) {
  char *copy = new char[directory.size() + 1];
  copy[directory.copy(copy, directory.size())] = '\0';
  delete[] std::exchange(state.directory, copy);
}

void start_once() {
  auto *state = new (g_storage) State;
  state->pid.store(syscall(SYS_getpid));
  void *page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page != MAP_FAILED) {
    if (madvise(page, kPage, MADV_WIPEONFORK) == 0) {
      g_life = new (page) Life{0, 1};
      state->wiped_on_fork = true;
    } else {
      munmap(page, kPage);
    }
  }
  state->has_key = pthread_key_create(&state->key, leave) == 0;
  const char *directory = secure_getenv("WARPLENS_SPOOL");
  if (directory != nullptr && *directory != '\0') {
    set_directory(*state, directory);
    state->launched = true;
    open_control(*state);
    start_watching(state->control.load(), state->names);
    state->mode.store(Mode::recording);
  }
  g_state = state;
  pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

// Null where there is none, or a full disk keeps it from being written.
ControlPage *writable_control(const State &state) {
  ControlPage *control = state.control.load();
  return control != nullptr && can_write(control) ? control : nullptr;
}

void turn_off(State &state, int error) {
  state.mode.store(Mode::failed);
  if (ControlPage *control = writable_control(state)) {
    uint32_t none = 0;
    control->error.compare_exchange_strong(none, static_cast<uint32_t>(error));
    control->failed.fetch_add(1);
  }
}

// Several programs can run one after the other under the same pid (exec), and one can record several times: each has its own
// spool.
int open_spool(State &state, ProcessLog &process) {
  const ClockParams &clock = *state.clock.load();
  std::string base = std::string(state.directory) + "/" + process_name();
  std::string json = "{" + process_json(now_ns(clock), state.forked ? state.fork_ns : 0) + ", " +
                     schema_json() + ", " + wide_schema_json() + "}";
  for (int i = 0; i < 1000; ++i) {
    int error = process.open(base + (i == 0 ? "" : "-" + std::to_string(i)) + ".spool", json, clock,
                             state.control.load());
    if (error != EEXIST) {
      return error;
    }
  }
  return EEXIST;
}

// Opens the process's log; 0 or an errno. The caller holds the lock.
int open_process(State &state) {
  ProcessLog *process = nullptr;
  int error = ENOMEM;
  try {
    process = new ProcessLog(state.names, state.generation + 1, state.last_turn);
    error = open_spool(state, *process);
  } catch (...) {
    error = ENOMEM;
  }
  if (error != 0) {
    delete process;
    return error;
  }
  if (ControlPage *control = writable_control(state)) {
    control->processes.fetch_add(1);
  }
  state.process = process;
  g_life->generation.store(++state.generation);
  return 0;
}

ThreadLog *lost(State &state) {
  if (ControlPage *control = writable_control(state)) {
    control->lost.fetch_add(1, std::memory_order_relaxed);
  }
  return nullptr;
}

// Begins the recording if it has not begun; false when it cannot. The caller holds the lock.
bool begin(State &state) {
  if (state.process == nullptr && state.mode.load() != Mode::failed && !is_guest()) {
    if (int error = open_process(state)) {
      turn_off(state, error);
    }
  }
  return state.process != nullptr;
}

// The calling thread's log in the recording that runs, which begins now if need be.
ThreadLog *enter_recording(State &state) {
  std::lock_guard lock(state.mutex);
  if (state.mode.load() == Mode::idle) {
    return nullptr;
  }
  if (!begin(state)) {
    return is_guest() ? nullptr : lost(state);
  }
  ThreadLog *log = state.process->enter_thread(take_spare(state));
  if (log == nullptr) {
    return lost(state);
  }
  if (state.forked) {
    bool forked_here = syscall(SYS_gettid) == getpid();
    state.process->adopt_ranges(state.inherited, forked_here ? log : nullptr, state.fork_ns);
    state.inherited = {};
  }
  state.forked = false;
  t_log = log;
  if (state.has_key) {
    pthread_setspecific(state.key, log);
  }
  return log;
}

// The calling thread's lane in the recording that runs, which begins now if need be.
Lane *enter_lane_of(State &state) {
  std::lock_guard lock(state.mutex);
  if (state.mode.load() == Mode::idle) {
    return nullptr;
  }
  Lane *lane = begin(state) ? state.process->enter_lane() : nullptr;
  if (lane == nullptr) {
    if (!is_guest()) {
      lost(state);
    }
    return nullptr;
  }
  t_lane = lane;
  if (state.has_key) {
    pthread_setspecific(state.key, lane);
  }
  return lane;
}

}  // namespace

Life *g_life = &g_static_life;

bool prepare() {
  try {
    std::call_once(g_once, start_once);
  } catch (...) {
    return false;
  }
  return g_state != nullptr;
}

ThreadLog *enter() {
  State &state = *g_state;
  if (state.mode.load(std::memory_order_relaxed) == Mode::idle && !forked_unnoticed()) {
    return nullptr;
  }
  Busy busy;
  if (!busy) {
    return lost(state);  // a signal handler, while the thread it interrupted is here
  }
  Uncancelled uncancelled;
  int saved = errno;
  if (forked_unnoticed() && !notice_fork(state)) {
    return lost(state);
  }
  ThreadLog *log = enter_recording(state);
  errno = saved;
  return log;
}

Lane *enter_lane() {
  State &state = *g_state;
  if (state.mode.load(std::memory_order_relaxed) == Mode::idle && !forked_unnoticed()) {
    return nullptr;
  }
  Busy busy;
  if (!busy) {
    lost(state);
    return nullptr;
  }
  Uncancelled uncancelled;
  int saved = errno;
  Lane *lane = nullptr;
  if (forked_unnoticed() && !notice_fork(state)) {
    lost(state);
  } else {
    lane = enter_lane_of(state);
  }
  errno = saved;
  return lane;
}

ProcessLog *open_log() {
  Busy busy;
  return busy ? own_log() : nullptr;
}

ProcessLog *own_log() {
  Uncancelled uncancelled;
  State &state = *g_state;
  if (forked_unnoticed() && !notice_fork(state)) {
    return nullptr;
  }
  std::lock_guard lock(state.mutex);
  return state.mode.load() != Mode::idle && begin(state) ? state.process : nullptr;
}

ControlPage *control_page() {
  return g_state->control.load();
}

// A spool that it began would be in its parent's memory, and in its own name.
bool is_guest() {
  return syscall(SYS_getpid) != g_state->pid.load(std::memory_order_relaxed);
}

bool is_unnoticed_child() {
  return forked_unnoticed();
}

Names *names() {
  return forked_unnoticed() && !notice_fork(*g_state) ? nullptr : &g_state->names;
}

void count_chained(bool reached) {
  if (!prepare()) {
    return;
  }
  (reached ? g_chained : g_not_chained).fetch_add(1);
  if (ControlPage *control = writable_control(*g_state)) {
    (reached ? control->chained : control->not_chained).fetch_add(1);
  }
}

const ClockParams &process_clock() {
  return *g_state->clock.load(std::memory_order_acquire);
}

namespace {

int begin_recording(State &state, const char *directory) {
  Busy busy;
  if (!busy) {
    return EAGAIN;
  }
  if (forked_unnoticed() && !notice_fork(state)) {
    return EAGAIN;
  }
  std::lock_guard lock(state.mutex);
  if (state.launched || state.mode.load() == Mode::recording) {
    return EBUSY;
  }
  int error = ENOMEM;
  try {
    set_directory(state, directory);
    open_control(state);
    state.forked = false;
    state.inherited = {};
    error = open_process(state);
  } catch (...) {
    error = ENOMEM;
  }
  state.mode.store(error == 0 ? Mode::recording : Mode::idle);
  return error;
}

int end_recording(State &state) {
  Busy busy;
  if (!busy) {
    return EAGAIN;
  }
  if (forked_unnoticed() && !notice_fork(state)) {
    return EAGAIN;
  }
  std::lock_guard lock(state.mutex);
  if (state.launched || state.mode.load() == Mode::idle) {
    return ENOENT;
  }
  state.mode.store(Mode::idle);
  g_life->generation.store(0);
  if (ProcessLog *process = std::exchange(state.process, nullptr)) {
    process->finish();  // and kept: threads may be in the middle of a call
    state.last_turn = process->last_turn();
  }
  if (ControlPage *control = state.control.exchange(nullptr)) {
    forget_mapping(control, kControlSize);
  }
  return 0;
}

// The log of a recording that was begun by hand; null without one, and where this thread is on a slow path already.
ProcessLog *log_begun_by_hand(State &state) {
  Busy busy;
  if (!busy || forked_unnoticed()) {
    return nullptr;
  }
  std::lock_guard lock(state.mutex);
  return state.launched ? nullptr : state.process;
}

}  // namespace

// What CUPTI does for a recording, other threads write into it: no lock is held meanwhile.
int start_recording(const char *directory) {
  if (directory == nullptr || *directory == '\0') {
    return EINVAL;
  }
  if (!prepare()) {
    return ENOMEM;
  }
  int error = begin_recording(*g_state, directory);
  ProcessLog *log = error == 0 ? log_begun_by_hand(*g_state) : nullptr;
  if (log != nullptr) {
    for_each_hook<&SessionHook::attach>(*log);
  }
  return error;
}

int stop_recording() {
  if (g_state == nullptr) {
    return ENOENT;
  }
  if (ProcessLog *log = log_begun_by_hand(*g_state)) {
    store_intrakernel_buffers(kLastKernelsMs, true);
    for_each_hook<&SessionHook::detach>(log->generation());
  }
  return end_recording(*g_state);
}

int profiler_start() {
  ControlPage *control = prepare() ? g_state->control.load() : nullptr;
  if (control == nullptr || control->trigger != Trigger::profiler_api ||
      open_window(control, Cause::profiler_api, static_cast<uint32_t>(getpid()), 0, control->window_limit) <=
          0) {
    return 0;
  }
  for_each_hook<&SessionHook::windows_changed>();
  return 1;
}

int profiler_stop() {
  ControlPage *control = prepare() ? g_state->control.load() : nullptr;
  if (control == nullptr || control->trigger != Trigger::profiler_api || control->trigger_closes == 0) {
    return 0;
  }
  // What another command opened stays open.
  uint32_t gate = control->gate.load(std::memory_order_acquire);
  if (gate % 2 == 0 || gate / 2 >= kWindows ||
      windows_of(control)[gate / 2].opened_by.load(std::memory_order_relaxed) !=
          static_cast<uint32_t>(Cause::profiler_api)) {
    return 0;
  }
  if (close_window(control, Cause::profiler_api, gate / 2 + 1) <= 0) {
    return 0;
  }
  store_intrakernel_buffers(kLastKernelsMs, true);
  for_each_hook<&SessionHook::windows_changed>();
  return 1;
}

// The end of an orderly process; recording goes on for those who run after us.
__attribute__((destructor)) static void at_exit() {
  finish_session();
}

void finish_session() {
  if (g_state != nullptr && !forked_unnoticed()) {
    for_each_hook<&SessionHook::end>();
  }
  if (g_state != nullptr && g_state->process != nullptr && !forked_unnoticed()) {
    close_for_process();
    ProcessLog &process = *g_state->process;
    process.file().note_end(now_ns(process.clock()));
  }
}

}  // namespace warplens::agent
