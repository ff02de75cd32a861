// What Python itself does: the GIL, collections, imports, calls.
#include <string>

#include "agent/hooks/cpu.h"
#include "agent/python/bootstrap.h"
#include "agent/session.h"
#include "python_parts.h"
#include "python_threads.h"

namespace warpline::agent {
namespace python {
namespace {

const std::atomic<uint32_t> *g_gate = nullptr;
const ClockParams *g_clock = nullptr;

void install(void *state, int64_t number) {
  auto *interpreter = new (std::nothrow) Interpreter{state, static_cast<uint32_t>(number)};
  if (interpreter == nullptr) {
    return;
  }
  uint32_t flags = cpu_settings().flags;
  if ((flags & kCpuGil) != 0) {
    install_gil(*interpreter);
  }
  if ((flags & kCpuGc) != 0) {
    install_gc(*interpreter);
  }
}

void begin(const CpuSettings &settings, WarplineTap &tap) {
  g_gate = &control_page()->gate;
  g_clock = &process_clock();
  if ((settings.flags & kCpuGil) != 0) {
    begin_gil(tap, settings.gil_threshold_ns);
  }
  begin_bootstrap(install);
}

void begin_child() {
  if ((cpu_settings().flags & kCpuGil) != 0) {
    begin_gil_child();
  }
}

void end() {
  end_gc();
  if ((cpu_settings().flags & kCpuGil) != 0) {
    end_gil();
  }
}

}  // namespace

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
  Lane *to = lane();
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
    kCpuGil | kCpuGc | kCpuImports | kCpuFunctions | kCpuPythonCalls | kCpuPythonEvents, python::begin,
    nullptr, python::begin_child, python::end};

}  // namespace warpline::agent
