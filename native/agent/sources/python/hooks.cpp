// Installs the hooks for the GIL, collections, imports and calls.
#include <new>
#include <string>

#include "agent/hooks/cpu.h"
#include "agent/python/hooks/bootstrap.h"
#include "agent/python/memory/objects.h"
#include "agent/session.h"
#include "parts.h"
#include "threads.h"
#include "wanted.h"

namespace warplens::agent {
namespace python {
namespace {

const std::atomic<uint32_t> *g_gate = nullptr;
constexpr int64_t kMost = 64;  // interpreters of one process whose functions are looked for
std::atomic<Interpreter *> g_interpreters[kMost];
const ClockParams *g_clock = nullptr;

void install(void *state, int64_t number) {
  auto *interpreter = new (std::nothrow) Interpreter{state, static_cast<uint32_t>(number)};
  if (interpreter == nullptr) {
    return;
  }
  if (number < kMost) {
    g_interpreters[number].store(interpreter);
  }
  uint32_t flags = cpu_settings().flags;
  if ((flags & kCpuPythonOpcodes) != 0) {
    install_opcodes(*interpreter);  // first: its imports are not the program's
  }
  if ((flags & kCpuGil) != 0) {
    install_gil(*interpreter);
    if (g_python.free_threaded) {
      install_parks(*interpreter);
    }
  }
  if ((flags & kCpuGc) != 0) {
    install_gc(*interpreter);
  }
  if ((flags & kCpuFunctions) != 0) {
    install_functions(*interpreter);
  }
  if ((flags & kCpuPythonEvents) != 0) {
    install_events(*interpreter);
  }
  if ((flags & (kCpuImports | kCpuFunctions | kCpuPythonCalls | kCpuPythonEvents)) != 0) {
    install_imports(*interpreter);
  }
  if ((flags & kCpuPythonCalls) != 0) {
    install_calls(*interpreter);
  }
}

void on_code(int64_t number, Object *code) {
  if (Interpreter *interpreter = number < kMost ? g_interpreters[number].load() : nullptr) {
    functions_of_code(*interpreter, code);
  }
}

void begin(const CpuSettings &settings, WarplensTap &tap) {
  g_gate = &control_page()->gate;
  g_clock = &process_clock();
  begin_threads(leave_gil);
  if ((settings.flags & kCpuGil) != 0) {
    begin_gil(tap, settings.gil_threshold_ns);
    begin_parks(tap, settings.gil_threshold_ns);
  }
  if ((settings.flags & kCpuFunctions) != 0) {
    wanted_functions();
    tell_of_code(on_code);
  }
  begin_bootstrap(install);
}

void begin_child() {
  begin_threads_child();
  begin_calls_child();
  if ((cpu_settings().flags & kCpuGil) != 0) {
    begin_gil_child();
  }
}

void end() {
  end_gc();
  end_calls();
  if ((cpu_settings().flags & kCpuFunctions) != 0 && g_interpreters[0].load() != nullptr) {
    end_functions();
  }
  if ((cpu_settings().flags & kCpuGil) != 0) {
    end_gil();
  }
}

}  // namespace

Object *own_type(std::atomic<Object *> &type, Object *(*make)()) {
  Object *there = type.load(std::memory_order_acquire);
  if (there == nullptr) {
    Object *made = make();
    if (made != nullptr && type.compare_exchange_strong(there, made, std::memory_order_acq_rel)) {
      return made;
    }
    Held given_up(made);
  }
  return there;
}

uint32_t gate_now() {
  return g_gate->load(std::memory_order_relaxed);
}

uint64_t now() {
  return now_ns(*g_clock);
}

uint32_t thread_number() {
  const Thread *thread = this_thread();
  return thread != nullptr ? thread->number : 0;
}

void write_span(const Span &span) {
  Lane *to = is_cpu_over() ? nullptr : lane();
  if (to == nullptr) {
    return;
  }
  PythonSpanRecord record{};
  record.head = {RecordType::python_span, span.flags, static_cast<uint16_t>(span.kind), span.name};
  record.start = span.start;
  record.end = span.end;
  record.value = span.value;
  record.value2 = span.value2;
  record.tid = span.tid != 0 ? span.tid : thread_number();
  record.file = span.file;
  record.line = span.line;
  record.color = span.color;
  to->append(record, span.start);
}

std::string_view text_of(Object *object) {
  Size size = 0;
  const char *text = object != nullptr ? g_python.PyUnicode_AsUTF8AndSize(object, &size) : nullptr;
  if (text == nullptr) {
    g_python.PyErr_Clear();
    return {};
  }
  return {text, static_cast<size_t>(size)};
}

uint32_t text_attribute(Object *object, const char *name) {
  KeptError kept;
  Held value(object != nullptr ? attribute(object, name) : nullptr);
  std::string_view text = text_of(value.get());
  return text.empty() ? 0 : text_number(text);
}

void tell_failure(std::string_view what) {
  Object *type = nullptr;
  Object *value = nullptr;
  Object *trace = nullptr;
  g_python.PyErr_Fetch(&type, &value, &trace);
  Held held_type(type), held_value(value), held_trace(trace);
  Held text(value != nullptr ? g_python.PyObject_Str(value) : nullptr);
  std::string said = std::string(what) + ": " + std::string(text ? text_of(text.get()) : "out of memory");
  g_python.PyErr_Clear();
  cpu_notice(CpuNotice::bootstrap, 0, said);
}

}  // namespace python

extern const CpuSource kPythonSource{
    kCpuGil | kCpuGc | kCpuImports | kCpuFunctions | kCpuPythonCalls | kCpuPythonEvents | kCpuPythonOpcodes,
    python::begin, nullptr, python::begin_child, python::end};

}  // namespace warplens::agent
