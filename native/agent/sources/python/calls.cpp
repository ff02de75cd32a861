// Tracks the traced calls of each thread, and writes them as spans.
#include "calls.h"

#include <new>

#include "agent/python/memory/objects.h"

namespace warplens::agent::python {

namespace {

constexpr uint32_t kBlock = 256;
constexpr uint32_t kBlocks = 64;  // what is deeper is counted, but not recorded

uint8_t g_meeting = 0;  // PyMutex: two threads may meet the same code at once

// Keeps `facts` beside its code, unless another thread was quicker. What is kept then; null when it cannot be.
CodeFacts *keep(Interpreter &interpreter, Object *code, CodeFacts *facts) {
  Locked locked(g_meeting);
  CodeFacts *known = known_code(interpreter, code);
  if (known != nullptr) {
    return known;
  }
  return g_python.set_code_extra(code, interpreter.code_extra, facts) == 0 ? facts : nullptr;
}

// Kept in the code of each function; given back with it.
void forget(void *facts) {
  delete static_cast<CodeFacts *>(facts);
}

struct Call {
  CodeFacts code;  // the code itself may be gone when the process ends
  const CodeFacts *facts;
  uint64_t start;
  uint32_t gate;
};

}  // namespace

// Blocks are never moved or given back: the thread that ends the process reads them while their owner may still run.
struct Calls {
  std::atomic<uint32_t> depth{0};
  Call *blocks[kBlocks] = {};

  Call *at(uint32_t index) {
    uint32_t block = index / kBlock;
    if (block >= kBlocks) {
      return nullptr;
    }
    if (blocks[block] == nullptr) {
      blocks[block] = new (std::nothrow) Call[kBlock];
    }
    return blocks[block] != nullptr ? &blocks[block][index % kBlock] : nullptr;
  }
};

namespace {

void write(const Call &call, uint64_t end, bool failed, bool cut, uint32_t thread) {
  write_span({.kind = SpanKind::function,
              .name = call.code.name,
              .start = call.start,
              .end = end,
              .value = failed ? 1 : 0,
              .tid = thread,
              .file = call.code.file,
              .line = call.code.line,
              .color = call.code.color,
              .flags = static_cast<uint8_t>(call.code.flags | (cut ? kSpanCut : 0))});
}

}  // namespace

CodeFacts *known_code(const Interpreter &interpreter, Object *code) {
  void *extra = nullptr;
  if (interpreter.code_extra < 0 || g_python.code_extra(code, interpreter.code_extra, &extra) != 0) {
    g_python.PyErr_Clear();
    return nullptr;
  }
  return static_cast<CodeFacts *>(extra);
}

CodeFacts *meet_code(Interpreter &interpreter, Object *code, std::string_view name) {
  if (interpreter.code_extra < 0) {
    Locked locked(g_meeting);
    if (interpreter.code_extra < 0) {
      interpreter.code_extra = g_python.new_code_extra(forget);
    }
  }
  CodeFacts *known = known_code(interpreter, code);
  if (known != nullptr) {
    if (!name.empty()) {
      known->name = text_number(name);
    }
    return known;
  }
  auto *facts = new (std::nothrow) CodeFacts{};
  if (facts == nullptr || interpreter.code_extra < 0) {
    delete facts;
    return nullptr;
  }
  bool qualified = g_python.version >= 0x030b;
  facts->name =
      !name.empty() ? text_number(name) : text_attribute(code, qualified ? "co_qualname" : "co_name");
  facts->file = text_attribute(code, "co_filename");
  facts->line = static_cast<uint32_t>(number_attribute(code, "co_firstlineno"));
  CodeFacts *kept = keep(interpreter, code, facts);
  if (kept != facts) {
    g_python.PyErr_Clear();
    delete facts;
  }
  return kept;
}

void enter_call(Thread &thread, const CodeFacts &code) {
  if (thread.calls == nullptr && (thread.calls = new (std::nothrow) Calls) == nullptr) {
    return;
  }
  uint32_t depth = thread.calls->depth.load(std::memory_order_relaxed);
  if (Call *call = thread.calls->at(depth)) {
    *call = {code, &code, now(), gate_now()};
  }
  thread.calls->depth.store(depth + 1, std::memory_order_release);
}

void leave_call(Thread &thread, const CodeFacts &code, bool failed) {
  uint32_t depth = thread.calls != nullptr ? thread.calls->depth.load(std::memory_order_relaxed) : 0;
  uint64_t end = now();
  // Calls above it whose end nobody told us of end with it.
  uint32_t index = depth;
  while (index > 0) {
    const Call *call = thread.calls->at(index - 1);
    if (call == nullptr || call->facts == &code) {
      break;
    }
    --index;
  }
  if (index == 0) {
    return;  // it was called before we listened
  }
  thread.calls->depth.store(index - 1, std::memory_order_release);
  uint32_t gate = gate_now();
  for (uint32_t i = depth; i >= index; --i) {
    const Call *call = thread.calls->at(i - 1);
    if (call != nullptr && was_open(call->gate, gate)) {
      write(*call, end, failed && i == index, i != index, 0);
    }
  }
}

void end_calls() {
  uint64_t end = now();
  uint32_t gate = gate_now();
  for_each_thread([&](Thread &thread) {
    Calls *calls = thread.calls;
    for (uint32_t i = calls != nullptr ? calls->depth.load(std::memory_order_acquire) : 0; i > 0; --i) {
      const Call *block = (i - 1) / kBlock < kBlocks ? calls->blocks[(i - 1) / kBlock] : nullptr;
      if (block != nullptr && was_open(block[(i - 1) % kBlock].gate, gate)) {
        write(block[(i - 1) % kBlock], end, false, true, thread.number);
      }
    }
  });
}

void begin_calls_child() {
  g_meeting = 0;  // who held it may not be here
}

void forget_calls(Thread &thread) {
  if (thread.calls != nullptr) {
    thread.calls->depth.store(0, std::memory_order_relaxed);
  }
}

}  // namespace warplens::agent::python
