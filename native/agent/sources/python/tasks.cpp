// Records tasks of concurrent.futures and multiprocessing.Pool.
// They are recorded in their workers, under the names of the submitted functions.
#include "tasks.h"

#include <string>

#include "agent/python/hooks/proxy.h"
#include "agent/python/memory/objects.h"
#include "threads.h"

namespace warplens::agent::python {
namespace {

bool is_text(Object *object, std::string_view text) {
  return object != nullptr && text_of(object) == text;
}

std::string plain_name(Object *function) {
  for (const char *name : {"__qualname__", "__name__"}) {
    Held found(attribute(function, name));
    if (std::string_view text = text_of(found.get()); !text.empty()) {
      return std::string(text);
    }
  }
  Held type(g_python.PyObject_Type(function));
  Held name(attribute(type.get(), "__qualname__"));
  return std::string(text_of(name.get()));
}

Object *item(Object *tuple, Size index) {
  Object *found = g_python.PyTuple_GetItem(tuple, index);
  g_python.PyErr_Clear();
  return found;
}

// Through functools.partial, and through those that run a share of a map: their first argument is the function.
std::string name_of(Object *function, Object *arguments) {
  Held inner(attribute(function, "func"));
  if (inner) {
    Held bound(attribute(function, "args"));
    return name_of(inner.get(), bound.get());
  }
  std::string name = plain_name(function);
  Object *first = arguments != nullptr ? item(arguments, 0) : nullptr;
  if (first != nullptr && name == "_process_chunk") {
    return name_of(first, nullptr);
  }
  if (first != nullptr && (name == "mapstar" || name == "starmapstar")) {
    Object *mapped = item(first, 0);
    return mapped != nullptr ? name_of(mapped, nullptr) : name;
  }
  return name;
}

void begin_task(const std::string &name) {
  if (Thread *thread = this_thread()) {
    thread->task = passing_number(name);
    thread->task_gate = gate_now();
    thread->task_since = now();
  }
}

void end_task(bool failed) {
  Thread *thread = this_thread();
  if (thread == nullptr || thread->task_since == 0) {
    return;
  }
  if (was_open(thread->task_gate, gate_now())) {
    write_span({.kind = SpanKind::task,
                .name = thread->task,
                .start = thread->task_since,
                .end = now(),
                .value = failed ? 1 : 0});
  }
  thread->task_since = 0;
}

// _WorkItem.run(self): `fn` and `args`, from 3.14 on in `task`.
Object *run_item(Object *function, void *, Object *arguments, Object *keywords) {
  Object *work = item(arguments, 0);
  Held future(work != nullptr ? attribute(work, "future") : nullptr);
  {
    Held task(work != nullptr ? attribute(work, "task") : nullptr);
    Held called(task ? held(item(task.get(), 0)) : work != nullptr ? attribute(work, "fn") : nullptr);
    Held given(task ? held(item(task.get(), 1)) : work != nullptr ? attribute(work, "args") : nullptr);
    begin_task(called ? name_of(called.get(), given.get()) : std::string());
    g_python.PyErr_Clear();
  }
  Object *result = g_python.PyObject_Call(function, arguments, keywords);
  KeptError kept;
  Held exception(future ? attribute(future.get(), "_exception") : nullptr);
  end_task(result == nullptr || (exception && exception.get() != g_python.none));
  return result;
}

// What a worker of a process pool takes from its queue: a _CallItem with `fn` and `args`, or of multiprocessing a tuple (job, number,
// function, arguments, keywords); None: it is to end.
void taken(Object *task) {
  if (g_python.PyTuple_Size(task) >= 4) {
    Object *function = item(task, 2);
    begin_task(name_of(function, item(task, 3)));
  } else {
    g_python.PyErr_Clear();
    Held function(attribute(task, "fn"));
    Held given(function ? attribute(task, "args") : nullptr);
    if (function) {
      begin_task(name_of(function.get(), given.get()));
    }
  }
  g_python.PyErr_Clear();
}

// What it puts into the other: a _ResultItem with `exception`, or (job, number, (succeeded, value)).
void put(Object *result) {
  Object *outcome = g_python.PyTuple_Size(result) == 3 ? item(result, 2) : nullptr;
  g_python.PyErr_Clear();
  if (outcome != nullptr) {
    Held shown(g_python.PyObject_Str(item(outcome, 0)));
    end_task(is_text(shown.get(), "False"));
  } else {
    Held exception(attribute(result, "exception"));
    end_task(exception && exception.get() != g_python.none);
  }
  g_python.PyErr_Clear();
}

// worker(inqueue, outqueue, …) and _process_worker(call_queue, result_queue, …)
Object *work(Object *function, void *data, Object *arguments, Object *keywords) {
  auto &interpreter = *static_cast<Interpreter *>(data);
  Size count = g_python.PyTuple_Size(arguments);
  Object *proxy_type = own_type(interpreter.proxy_type, make_proxy_type);
  Held in(count >= 2 && proxy_type != nullptr
              ? make_proxy(proxy_type, item(arguments, 0), "get", taken, nullptr)
              : nullptr);
  Held out(in ? make_proxy(proxy_type, item(arguments, 1), "put", nullptr, put) : nullptr);
  Held instead(out ? g_python.PyTuple_New(count) : nullptr);
  g_python.PyErr_Clear();
  if (!instead) {
    return g_python.PyObject_Call(function, arguments, keywords);
  }
  for (Size i = 0; i < count; ++i) {
    Object *one = i == 0 ? in.get() : i == 1 ? out.get() : item(arguments, i);
    g_python.PyTuple_SetItem(instead.get(), i, held(one));
  }
  return g_python.PyObject_Call(function, instead.get(), keywords);
}

}  // namespace

void tasks_in(Interpreter &interpreter, std::string_view module_name, Object *module) {
  if (module_name == "concurrent.futures.thread") {
    Held item_type(static_attribute(module, "_WorkItem"));
    wrap_in(interpreter, item_type.get(), "run", run_item);
  } else if (module_name == "concurrent.futures.process") {
    wrap_in(interpreter, module, "_process_worker", work);
  } else if (module_name == "multiprocessing.pool") {
    wrap_in(interpreter, module, "worker", work);
  }
}

}  // namespace warplens::agent::python
