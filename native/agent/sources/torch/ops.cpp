// Records operators when they begin and end.
// PyTorch calls these for every operator, in the thread that runs it. An open range carries the
// address of PyTorch's record, by which the end finds it: records need not end in the order of
// their stack.
#include "ops.h"

#include <cstring>
#include <utility>

#include "agent/hooks/cpu.h"
#include "agent/session.h"
#include "agent/source.h"

namespace warplens::agent::torch {
namespace {

Library g_library;
uint16_t g_domain = 0;
bool g_inputs = false;
bool g_listens = false;
uint64_t g_handles[kTorchScopes] = {};                       // of the callbacks, 0 = none
std::atomic<const std::atomic<uint32_t> *> g_gate{nullptr};  // of the recording that runs
std::atomic<bool> g_on{false};
__thread uint32_t t_open = 0;  // operators that this thread began in a window

bool is_recording() {
  return g_on.load(std::memory_order_relaxed) &&
         g_gate.load(std::memory_order_relaxed)->load(std::memory_order_relaxed) % 2 == 1;
}

uint64_t address_of(const TorchRecord &record) {
  return reinterpret_cast<uintptr_t>(&record);
}

uint64_t with_scope(const TorchRecord &record, TorchScope scope) {
  return (static_cast<uint64_t>(sequence_of(g_library, record)) & kNoSequence) | static_cast<uint64_t>(scope)
                                                                                     << kOpScope;
}

// A record that another thread may end.
struct AsyncRange : TorchContext {
  explicit AsyncRange(uint64_t number) : id(number) {}
  uint64_t id;
};

std::unique_ptr<TorchContext> begin_async(ThreadLog &log, const Label &label) {
  const uint64_t id = log.process()->start_range(log, g_domain, label);
  return id != 0 ? std::make_unique<AsyncRange>(id) : nullptr;
}

template <bool inputs>
Label label_of(const TorchRecord &record, ThreadLog &log) {
  Label label;
  const char *name = g_library.name(&record);
  label.name = log.intern(name, std::strlen(name));
  if constexpr (inputs) {
    describe_inputs(g_library, record, log, label);
  }
  return label;
}

template <TorchScope scope, bool inputs>
std::unique_ptr<TorchContext> on_start(const TorchRecord &record) {
  if (!is_recording()) [[unlikely]] {
    return nullptr;
  }
  ThreadLog *log = thread_log();
  if (log == nullptr || is_cpu_over()) [[unlikely]] {
    return nullptr;
  }
  if constexpr (scope == TorchScope::user) {
    if (g_library.is_async(&record)) {
      return begin_async(*log, label_of<false>(record, *log));
    }
  }
  Label label = label_of<inputs>(record, *log);
  label.payload = address_of(record);
  // What the program or a library named is a range of the default domain.
  log->push<RecordType::op>(scope == TorchScope::user ? uint16_t{0} : g_domain, label);
  ++t_open;
  return nullptr;
}

template <TorchScope scope>
void on_end(const TorchRecord &record, TorchContext *context) {
  if constexpr (scope == TorchScope::user) {
    if (context != nullptr) {
      if (ThreadLog *log = thread_log()) {
        log->process()->end_range(*log, static_cast<AsyncRange *>(context)->id, now_ns(log->clock()));
      }
      return;
    }
  }
  ThreadLog *log = t_log;
  if (t_open == 0 || log == nullptr) {
    return;
  }
  if (log->generation() != g_life->generation.load(std::memory_order_relaxed)) [[unlikely]] {
    t_open = 0;  // it began in a recording that has ended
    return;
  }
  // One that began while no window was open has nothing to close.
  if (log->pop_op(address_of(record), now_ns(log->clock()), with_scope(record, scope))) {
    --t_open;
  }
}

template <TorchScope scope>
void observe(bool inputs) {
  TorchCallback callback;
  callback.start = inputs ? on_start<scope, true> : on_start<scope, false>;
  callback.end = on_end<scope>;
  callback.scopes[static_cast<size_t>(scope)] = true;
  callback.needs_inputs = inputs;
  g_handles[static_cast<size_t>(scope)] = g_library.add_callback(callback);
}

}  // namespace

void begin_ops(const Library &library, uint16_t domain, bool inputs) {
  g_library = library;
  g_domain = domain;
  resume_ops(inputs);
}

void resume_ops(bool inputs) {
  g_inputs = inputs;
  g_gate.store(&control_page()->gate, std::memory_order_relaxed);
  g_on.store(true, std::memory_order_release);
}

void listen_to_ops(bool on) {
  if (on == g_listens) {
    return;
  }
  g_listens = on;
  if (on) {
    observe<TorchScope::function>(g_inputs);
    observe<TorchScope::backward>(g_inputs);
    observe<TorchScope::torchscript>(g_inputs);
    observe<TorchScope::custom_class>(g_inputs);
    observe<TorchScope::user>(false);
    return;
  }
  for (uint64_t &handle : g_handles) {
    if (handle != 0) {
      g_library.remove_callback(std::exchange(handle, 0));
    }
  }
}

void end_ops() {
  g_on.store(false, std::memory_order_relaxed);
}

}  // namespace warplens::agent::torch
