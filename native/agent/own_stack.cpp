// Walks the calling thread's own stack.
// It walks a copy of the stack with the agent's own mappings of unwind tables: no loader lock.
#include "own_stack.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <mutex>
#include <new>

#include "agent/python/memory/mixed.h"
#include "hooks/unwind.h"
#include "spool/system/uncancelled.h"
#include "unwind/unwinder.h"

namespace warplens::agent {
namespace {

constexpr size_t kCopied = 32 << 10;  // bytes of the stack; more is read where it is
constexpr size_t kMostFrames = 256;
constexpr size_t kWalkers = 8;

// What one walk needs. Threads share a few of them.
struct Walker {
  std::mutex mutex;
  MappingView mappings;
  EvalCode eval;
  uint64_t eval_version = 0;
  std::unique_ptr<PythonReader> python;
  PythonStack python_stack;
  NativeFrame frames[kMostFrames];
  uint8_t stack[kCopied];

  size_t walk(const Registers &registers, bool *whole);
  bool read_python(uint32_t tid);
  uint32_t write(ProcessLog &log, uint32_t depth, size_t count, bool whole);
};

std::atomic<Walker *> g_walkers[kWalkers];

#if defined(__aarch64__)
#define CAPTURE(registers)                                                               \
  asm volatile(                                                                          \
      "stp x19, x20, [%0, #152]\n stp x21, x22, [%0, #168]\n stp x23, x24, [%0, #184]\n" \
      "stp x25, x26, [%0, #200]\n stp x27, x28, [%0, #216]\n stp x29, x30, [%0, #232]\n" \
      "mov x9, sp\n str x9, [%0, #248]\n adr x9, .\n str x9, [%0, #256]"                 \
      :                                                                                  \
      : "r"((registers).value)                                                           \
      : "x9", "memory")
#else
#define CAPTURE(registers)                                                                     \
  asm volatile(                                                                                \
      "leaq 0(%%rip), %%rax\n movq %%rax, 128(%0)\n movq %%rbx, 24(%0)\n movq %%rbp, 48(%0)\n" \
      "movq %%rsp, 56(%0)\n movq %%r12, 96(%0)\n movq %%r13, 104(%0)\n movq %%r14, 112(%0)\n"  \
      "movq %%r15, 120(%0)"                                                                    \
      :                                                                                        \
      : "r"((registers).value)                                                                 \
      : "rax", "memory")
#endif

Walker *walker_of(uint32_t tid) {
  std::atomic<Walker *> &place = g_walkers[tid % kWalkers];
  Walker *known = place.load(std::memory_order_acquire);
  if (known == nullptr) {
    auto *made = new (std::nothrow) Walker;
    if (made == nullptr || place.compare_exchange_strong(known, made)) {
      return made;
    }
    delete made;
  }
  return known;
}

// Our own code, and the stub's wrapper that the program called.
bool is_ours(const NativeFrame &frame) {
  if (frame.mapping == nullptr) {
    return false;
  }
  std::string_view path = frame.mapping->module->path;
  return path.substr(path.rfind('/') + 1).starts_with("libwarplens_");
}

size_t Walker::walk(const Registers &registers, bool *whole) {
  StackView view{registers.sp(), stack, read_own(registers.sp(), stack, sizeof(stack)), true};
  Reached reached = Reached::lost;
  size_t count = 0;
  for (int attempt = 0; attempt < 2; ++attempt) {
    modules().view(&mappings);
    count = unwind(mappings, row_cache(), view, registers, frames, kMostFrames, &reached);
    if (reached != Reached::lost || !modules().refresh(clock_ns(CLOCK_MONOTONIC))) {
      break;
    }
  }
  *whole = reached == Reached::end;
  return count;
}

bool Walker::read_python(uint32_t tid) {
  const PythonRuntime *runtime = known_python();
  if (runtime == nullptr || !runtime->is_known) {
    return false;
  }
  if (eval.end == 0 && eval_version != mappings.version) {
    eval_version = mappings.version;
    find_eval_code(*runtime, mappings, &eval);
  }
  if (python == nullptr) {
    python = std::make_unique<PythonReader>(*runtime);
  }
  return eval.end != 0 && python->read(tid, python_stack);
}

uint32_t Walker::write(ProcessLog &log, uint32_t depth, size_t count, bool whole) {
  size_t first = 0;
  while (first < count && is_ours(frames[first])) {
    ++first;
  }
  bool runs_python = !whole;
  for (size_t i = first; i < count; ++i) {
    runs_python |= eval.holds(frames[i]);
  }
  if (eval.end == 0 || runs_python) {
    runs_python = read_python(static_cast<uint32_t>(syscall(SYS_gettid)));
  }
  if (!runs_python) {
    python_stack.frames.clear();
    python_stack.is_cut = false;
  }
  bool fits = false;
  return write_mixed(log, frames + first, count - first, whole, eval, python_stack,
                     python != nullptr ? &python->codes() : nullptr, depth, &fits);
}

// Not inlined: what is captured is this function's.
__attribute__((noinline)) uint32_t own_stack(ProcessLog &log, uint32_t depth) {
  Registers registers{};
  CAPTURE(registers);
  Walker *walker = walker_of(static_cast<uint32_t>(syscall(SYS_gettid)));
  if (walker == nullptr) {
    return 0;
  }
  Uncancelled uncancelled;
  int saved = errno;
  std::lock_guard lock(walker->mutex);
  uint32_t stack = 0;
  try {
    bool whole = false;
    size_t count = walker->walk(registers, &whole);
    stack = walker->write(log, depth, count, whole);
  } catch (const std::bad_alloc &) {
    // A call without a stack.
  }
  errno = saved;
  return stack;
}

}  // namespace

void offer_own_stacks() {
  g_unwinder.store(own_stack, std::memory_order_release);
}

void renew_own_stacks() {
  for (std::atomic<Walker *> &place : g_walkers) {
    place.store(nullptr, std::memory_order_relaxed);  // left to nobody: its lock may be held
  }
}

}  // namespace warplens::agent
