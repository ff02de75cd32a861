// Records imports.
// A C function replaces importlib's _find_and_load, which runs for each module that is not imported
// yet. A C function leaves no line in tracebacks.
#include "parts.h"
#include "threads.h"

namespace warplens::agent::python {
namespace {

constexpr char kCapsule[] = "warplens.import";

void tell_others(Interpreter &interpreter, std::string_view name, Object *module) {
  uint32_t flags = cpu_settings().flags;
  if ((flags & kCpuFunctions) != 0) {
    functions_in(interpreter, name, module);
  }
  if ((flags & kCpuPythonCalls) != 0) {
    calls_in(interpreter, name, module);
  }
  if ((flags & kCpuPythonEvents) != 0) {
    events_in(interpreter, name, module);
  }
}

// The module of that name itself: a parent may be what was returned.
void look_at(Interpreter &interpreter, std::string_view name, Object *arguments) {
  Held modules(held(g_python.PyImport_GetModuleDict()));
  Held key(held(g_python.PyTuple_GetItem(arguments, 0)));
  Held module(key ? g_python.PyMapping_GetItemString(modules.get(), name.data()) : nullptr);
  if (module) {
    tell_others(interpreter, name, module.get());
  }
  g_python.PyErr_Clear();
}

// _find_and_load(name, import_)
Object *on_import(Object *self, Object *arguments, Object *keywords) {
  auto *interpreter = static_cast<Interpreter *>(g_python.PyCapsule_GetPointer(self, kCapsule));
  if (interpreter == nullptr) {
    return nullptr;
  }
  Thread *thread = this_thread();
  Object *first = g_python.PyTuple_Size(arguments) > 0 ? g_python.PyTuple_GetItem(arguments, 0) : nullptr;
  std::string_view name = text_of(first);
  if (thread == nullptr || name.empty()) {
    return g_python.PyObject_Call(interpreter->find_and_load, arguments, keywords);
  }
  Import import{thread->import, name};
  thread->import = &import;
  uint32_t gate = gate_now();
  uint64_t start = now();
  Object *result = g_python.PyObject_Call(interpreter->find_and_load, arguments, keywords);
  uint64_t end = now();
  thread->import = import.outer;
  if ((cpu_settings().flags & kCpuImports) != 0 && was_open(gate, gate_now())) {
    write_span({.kind = SpanKind::import,
                .name = text_number(name),
                .start = start,
                .end = end,
                .value = result == nullptr ? 1 : 0});
  }
  if (result != nullptr) {
    look_at(*interpreter, name, arguments);
  }
  return result;
}

MethodDef g_method{"_find_and_load", reinterpret_cast<void *>(on_import), kArguments | kKeywords, nullptr};

// What was imported before us.
void look_at_all(Interpreter &interpreter) {
  for (const char *name : {"threading", "warnings", "concurrent.futures.thread", "concurrent.futures.process",
                           "multiprocessing.pool"}) {
    if (Object *module = g_python.PyDict_GetItemString(g_python.PyImport_GetModuleDict(), name)) {
      Held kept(held(module));
      tell_others(interpreter, name, module);
    }
  }
}

}  // namespace

bool install_imports(Interpreter &interpreter) {
  Object *importlib = g_python.PyDict_GetItemString(g_python.PyImport_GetModuleDict(), "_frozen_importlib");
  interpreter.find_and_load =
      importlib != nullptr ? g_python.PyObject_GetAttrString(importlib, "_find_and_load") : nullptr;
  Held self(interpreter.find_and_load != nullptr ? g_python.PyCapsule_New(&interpreter, kCapsule, nullptr)
                                                 : nullptr);
  Held function(self ? g_python.PyCMethod_New(&g_method, self.get(), nullptr, nullptr) : nullptr);
  if (!function || g_python.PyObject_SetAttrString(importlib, "_find_and_load", function.get()) != 0) {
    tell_failure("importlib._find_and_load");
    return false;
  }
  look_at_all(interpreter);
  return true;
}

}  // namespace warplens::agent::python
