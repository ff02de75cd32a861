// Records garbage collections by a C function among gc.callbacks.
#include <atomic>
#include <new>

#include "parts.h"

namespace warplens::agent::python {
namespace {

constexpr char kCapsule[] = "warplens.gc";

// One collection runs at a time in an interpreter.
struct Collector {
  std::atomic<uint64_t> since{0};  // 0: none runs
  int64_t generation = 0;
  uint32_t gate = 0;
  uint32_t thread = 0;
  Collector *next = nullptr;
  // Keys of the dict that a callback gets, made once: collections may come by the thousand.
  Object *key_of_generation = nullptr;
  Object *key_of_collected = nullptr;
  Object *key_of_uncollectable = nullptr;
};
std::atomic<Collector *> g_collectors{nullptr};

int64_t number_in(Object *facts, Object *key) {
  Object *value = key != nullptr ? g_python.PyDict_GetItem(facts, key) : nullptr;
  return value != nullptr ? g_python.PyLong_AsLongLong(value) : 0;
}

// collected(phase, info)
Object *on_collection(Object *self, Object *const *arguments, Size count) {
  auto *collector = static_cast<Collector *>(g_python.PyCapsule_GetPointer(self, kCapsule));
  if (collector == nullptr || count != 2) {
    g_python.PyErr_Clear();
    return held(g_python.none);
  }
  if (text_of(arguments[0]) == "start") {
    collector->generation = number_in(arguments[1], collector->key_of_generation);
    collector->gate = gate_now();
    collector->thread = thread_number();
    collector->since.store(now(), std::memory_order_relaxed);
    return held(g_python.none);
  }
  uint64_t since = collector->since.exchange(0, std::memory_order_relaxed);
  if (since != 0 && was_open(collector->gate, gate_now())) {
    uint64_t end = now();
    write_span({.kind = SpanKind::gc,
                .start = since,
                .end = end,
                .value = collector->generation,
                .value2 = number_in(arguments[1], collector->key_of_collected),
                .line = static_cast<uint32_t>(number_in(arguments[1], collector->key_of_uncollectable))});
  }
  g_python.PyErr_Clear();
  return held(g_python.none);
}

MethodDef g_method{"collected", reinterpret_cast<void *>(on_collection), kFast, nullptr};

// The list of callbacks. The program finds the module imported only if it was.
Object *callbacks() {
  Object *modules = g_python.PyImport_GetModuleDict();
  bool known = g_python.PyDict_GetItemString(modules, "gc") != nullptr;
  Held module(g_python.PyImport_ImportModule("gc"));
  Object *list = module ? g_python.PyObject_GetAttrString(module.get(), "callbacks") : nullptr;
  if (module && !known) {
    g_python.PyDict_DelItemString(modules, "gc");
  }
  return list;
}

}  // namespace

bool install_gc(Interpreter &) {
  auto *collector = new (std::nothrow) Collector;
  if (collector == nullptr) {
    return false;
  }
  collector->key_of_generation = g_python.PyUnicode_InternFromString("generation");
  collector->key_of_collected = g_python.PyUnicode_InternFromString("collected");
  collector->key_of_uncollectable = g_python.PyUnicode_InternFromString("uncollectable");
  g_python.PyErr_Clear();
  collector->next = g_collectors.load();
  while (!g_collectors.compare_exchange_weak(collector->next, collector)) {
  }
  Held self(g_python.PyCapsule_New(collector, kCapsule, nullptr));
  Held function(self ? g_python.PyCMethod_New(&g_method, self.get(), nullptr, nullptr) : nullptr);
  Held list(function ? callbacks() : nullptr);
  if (!list || g_python.PyList_Append(list.get(), function.get()) != 0) {
    tell_failure("gc.callbacks");
    return false;
  }
  return true;
}

void end_gc() {
  for (Collector *collector = g_collectors.load(); collector != nullptr; collector = collector->next) {
    if (uint64_t since = collector->since.exchange(0)) {
      write_span({.kind = SpanKind::gc,
                  .start = since,
                  .end = now(),
                  .value = collector->generation,
                  .tid = collector->thread,
                  .flags = kSpanCut});
    }
  }
}

}  // namespace warplens::agent::python
