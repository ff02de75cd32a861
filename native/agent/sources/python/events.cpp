// Records exceptions where they are raised, and warnings that are shown.
#include <algorithm>
#include <string>

#include "agent/python/hooks/wrapper.h"
#include "agent/python/memory/objects.h"
#include "calls.h"
#include "tasks.h"

namespace warplens::agent::python {
namespace {

// An exception passes through here in each frame that it leaves: only in the first it has a traceback of one frame.
bool is_raised_here(Object *exception) {
  Held trace(g_python.PyException_GetTraceback(exception));
  Held next(trace ? attribute(trace.get(), "tb_next") : nullptr);
  return !next || next.get() == g_python.none;
}

// Each import raises, and catches, internal exceptions.
bool is_importlib(Object *code) {
  Held file(attribute(code, "co_filename"));
  return text_of(file.get()).starts_with("<frozen importlib");
}

// raised(code, offset, exception)
Object *raised(Object *, Object *const *arguments, Size count) {
  if (count != 3 || gate_now() % 2 == 0) {
    return held(g_python.none);
  }
  KeptError kept;
  if (!is_importlib(arguments[0]) && is_raised_here(arguments[2])) {
    uint64_t time = now();
    Held type(g_python.PyObject_Type(arguments[2]));
    long long offset = g_python.PyLong_AsLongLong(arguments[1]);
    int line = g_python.PyCode_Addr2Line(arguments[0], static_cast<int>(offset));
    write_span({.kind = SpanKind::exception,
                .name = text_attribute(type.get(), "__qualname__"),
                .start = time,
                .end = time,
                .file = text_attribute(arguments[0], "co_filename"),
                .line = static_cast<uint32_t>(std::max(line, 0))});
  }
  g_python.PyErr_Clear();
  return held(g_python.none);
}

MethodDef g_raised{"raised", reinterpret_cast<void *>(raised), kFast, nullptr};

// _showwarnmsg(message)
Object *shown(Object *function, void *, Object *arguments, Object *keywords) {
  Object *message = g_python.PyTuple_Size(arguments) > 0 ? g_python.PyTuple_GetItem(arguments, 0) : nullptr;
  if (message != nullptr && gate_now() % 2 != 0) {
    uint64_t time = now();
    Held category(attribute(message, "category"));
    Held name(category ? attribute(category.get(), "__name__") : nullptr);
    Held content(attribute(message, "message"));
    Held text(content ? g_python.PyObject_Str(content.get()) : nullptr);
    std::string said = std::string(text_of(name.get())) + ": " + std::string(text_of(text.get()));
    g_python.PyErr_Clear();
    write_span({.kind = SpanKind::warning,
                .name = passing_number(said),
                .start = time,
                .end = time,
                .file = text_attribute(message, "filename"),
                .line = static_cast<uint32_t>(number_attribute(message, "lineno"))});
  }
  g_python.PyErr_Clear();
  return g_python.PyObject_Call(function, arguments, keywords);
}

}  // namespace

void wrap_in(Interpreter &interpreter, Object *holder, const char *name, WrappedCall call) {
  Object *wrapper_type = own_type(interpreter.wrapper_type, make_wrapper_type);
  Held there(holder != nullptr ? static_attribute(holder, name) : nullptr);
  Held wrapper(there && wrapper_type != nullptr ? wrap(wrapper_type, there.get(), call, &interpreter)
                                                : nullptr);
  if (!wrapper || g_python.PyObject_SetAttrString(holder, name, wrapper.get()) != 0) {
    g_python.PyErr_Clear();
    cpu_notice(CpuNotice::bootstrap, 0,
               std::string("this Python has no ") + name + ": what it would tell is missing");
  }
}

void events_in(Interpreter &interpreter, std::string_view module_name, Object *module) {
  if (module_name == "warnings") {
    wrap_in(interpreter, module, "_showwarnmsg", shown);
  }
  tasks_in(interpreter, module_name, module);
}

bool install_events(Interpreter &interpreter) {
  if (has_monitoring()) {
    return listen_to_raised(interpreter, g_raised);
  }
  cpu_notice(CpuNotice::older, 0, "exceptions are recorded from Python 3.12 on");
  return true;
}

}  // namespace warplens::agent::python
