// Asks asyncio and trio for the task of a thread, and gives tasks their numbers.
#include "tasks.h"

#include <dlfcn.h>

#include <cstddef>
#include <new>

#include "bindings/payloads/schemas.h"
#include "bindings/values/string_cache.h"
#include "open.h"

namespace warplens::binding {

__thread ThreadTask t_task
    __attribute__((tls_model("initial-exec"))) = {0, kNever, kNever, 0, nullptr, 0, 0, 0, false};
std::atomic<const WarplensTasks *> g_tasks{nullptr};
std::atomic<bool> g_tasks_later{false};
std::atomic<uint64_t> g_news{0};

namespace {

constexpr uint32_t kOnlyRecording = 1;  // of an agent that does not number them, or of no agent

}  // namespace

std::atomic<const uint32_t *> g_recording{&kOnlyRecording};

namespace {

using AskForTasks = const WarplensTasks *(*)();
std::atomic<AskForTasks> g_ask{nullptr};

PyObject *g_context_range = nullptr;  // ContextVar: Open
PyObject *g_notes = nullptr;          // address of a library's task -> Note

// What is known about a library's task; goes with the task.
struct Note {
  PyObject_HEAD PyObject *task;  // weak reference
  Owner owner;
};

void note_dealloc(PyObject *o) {
  Note *note = reinterpret_cast<Note *>(o);
  Py_CLEAR(note->task);
  Py_CLEAR(note->owner.name);
  PyObject_Free(o);
}

PyTypeObject NoteType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx._binding.TaskNote",
    .tp_basicsize = sizeof(Note),
    .tp_dealloc = note_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

PyObject *forget_task(PyObject *key, PyObject *) {
  if (PyDict_DelItem(g_notes, key) < 0) {
    PyErr_Clear();
  }
  Py_RETURN_NONE;
}

PyMethodDef forget_method = {"forget_task", forget_task, METH_O, nullptr};

// Something of a library that the program has imported. It is never imported from here. New reference or null.
PyObject *imported(const char *module, const char *name) {
  PyObject *text = PyUnicode_FromString(module);
  PyObject *found = text != nullptr ? PyImport_GetModule(text) : nullptr;
  Py_XDECREF(text);
  PyObject *value = found != nullptr ? PyObject_GetAttrString(found, name) : nullptr;
  Py_XDECREF(found);
  PyErr_Clear();
  return value;
}

// The same, looked up until it is there and then kept for good.
class Kept {
 public:
  constexpr Kept(const char *module, const char *name) : module_(module), name_(name) {}
  PyObject *get() {
    PyObject *value = value_.load(std::memory_order_acquire);
    if (value == nullptr && (value = imported(module_, name_)) != nullptr) {
      value_.store(value, std::memory_order_release);
    }
    return value;
  }

 private:
  const char *module_;
  const char *name_;
  std::atomic<PyObject *> value_{nullptr};
};

Kept g_running_loop("asyncio.events", "_get_running_loop");
#if PY_VERSION_HEX >= 0x030C0000
Kept g_current_task("asyncio.tasks", "current_task");
#else
Kept g_current_tasks("asyncio.tasks", "_current_tasks");
#endif
Kept g_in_trio_task("trio.lowlevel", "in_trio_task");
Kept g_trio_task("trio.lowlevel", "current_task");

PyObject *none_to_null(PyObject *o) {
  if (o == Py_None) {
    Py_DECREF(o);
    return nullptr;
  }
  return o;
}

PyObject *asyncio_task() {
  PyObject *ask = g_running_loop.get();
  PyObject *loop = ask != nullptr ? none_to_null(PyObject_CallNoArgs(ask)) : nullptr;
  if (loop == nullptr) {
    return nullptr;
  }
  PyObject *task = nullptr;
#if PY_VERSION_HEX >= 0x030C0000
  if (PyObject *current = g_current_task.get(); current != nullptr) {
    task = none_to_null(PyObject_CallOneArg(current, loop));
  }
#else
  if (PyObject *tasks = g_current_tasks.get(); tasks != nullptr && PyDict_Check(tasks)) {
    task = Py_XNewRef(PyDict_GetItemWithError(tasks, loop));
  }
#endif
  Py_DECREF(loop);
  return task;
}

PyObject *trio_task() {
  PyObject *ask = g_in_trio_task.get();
  PyObject *current = ask != nullptr ? g_trio_task.get() : nullptr;
  PyObject *inside = current != nullptr ? PyObject_CallNoArgs(ask) : nullptr;
  Py_XDECREF(inside);
  return inside == Py_True ? PyObject_CallNoArgs(current) : nullptr;
}

PyObject *name_of(PyObject *task, bool asyncio) {
  PyObject *name = attribute(task, asyncio ? "get_name" : "name");
  if (asyncio && name != nullptr) {
    PyObject *ask = name;
    name = PyObject_CallNoArgs(ask);
    Py_DECREF(ask);
  }
  if (name == nullptr || !PyUnicode_Check(name)) {
    PyErr_Clear();
    Py_XDECREF(name);
    return nullptr;
  }
  return name;
}

Note *make_note(PyObject *task, PyObject *key, bool asyncio) {
  Note *note = PyObject_New(Note, &NoteType);
  if (note == nullptr) {
    return nullptr;
  }
  new (&note->owner) Owner;
  PyObject *forget = PyCFunction_New(&forget_method, key);
  note->task = forget != nullptr ? PyWeakref_NewRef(task, forget) : nullptr;
  Py_XDECREF(forget);
  note->owner.library = asyncio ? "asyncio" : "trio";
  note->owner.name = name_of(task, asyncio);
  if (Open *range = context_range(); range != nullptr) {
    note->owner.parent = range->point;
    Py_DECREF(reinterpret_cast<PyObject *>(range));
  }
  if (note->task == nullptr || PyDict_SetItem(g_notes, key, reinterpret_cast<PyObject *>(note)) < 0) {
    Py_DECREF(reinterpret_cast<PyObject *>(note));
    return nullptr;
  }
  Py_DECREF(reinterpret_cast<PyObject *>(note));  // g_notes keeps it while the task lives
  return note;
}

// Borrowed: lives as long as the task.
Note *note_of(PyObject *task, bool asyncio) {
  PyObject *key = PyLong_FromVoidPtr(task);
  if (key == nullptr) {
    return nullptr;
  }
  PyObject *found = PyDict_GetItemWithError(g_notes, key);
  Note *note = found != nullptr ? reinterpret_cast<Note *>(found) : make_note(task, key, asyncio);
  Py_DECREF(key);
  return note;
}

bool finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing() != 0;
#else
  return _Py_IsFinalizing() != 0;
#endif
}

}  // namespace

PyObject *keeper_of(Owner *owner) {
  char *at = reinterpret_cast<char *>(owner) - offsetof(Note, owner);
  return reinterpret_cast<PyObject *>(at);
}

bool init_tasks() {
  if (PyType_Ready(&NoteType) < 0 || PyType_Ready(&OpenType) < 0) {
    return false;
  }
  if (g_notes == nullptr) {
    g_notes = PyDict_New();
    g_context_range = PyContextVar_New("warplens.nvtx.range", nullptr);
  }
  return g_notes != nullptr && g_context_range != nullptr;
}

void find_tasks(const char *library) {
  void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  g_ask.store(handle != nullptr ? reinterpret_cast<AskForTasks>(dlsym(handle, "warplens_tasks")) : nullptr);
  g_tasks.store(nullptr);
  g_recording.store(&kOnlyRecording);
  g_tasks_later.store(g_ask.load() != nullptr);
  g_news.fetch_add(1);
  if (handle != nullptr) {
    dlclose(handle);
  }
}

const WarplensTasks *ask_for_tasks() {
  const AskForTasks ask = g_ask.load();
  const WarplensTasks *tasks = ask != nullptr ? ask() : nullptr;
  if (tasks != nullptr && tasks->size >= sizeof(WarplensTasks)) {
    g_recording.store(tasks->recording != nullptr ? tasks->recording : &kOnlyRecording);
    g_tasks.store(tasks, std::memory_order_release);
    g_tasks_later.store(false, std::memory_order_relaxed);
    return tasks;
  }
  return nullptr;
}

void refresh(PyThreadState *state) {
  ThreadTask &t = t_task;
  const uint32_t now = recording();
  if (t.recording != now) {
    t.recording = now;
    t.told = 0;
    t.told_at = kNever;
  }
  if (t.state != state->id) {
    t.state = state->id;
    t.told_at = t.seen_at = kNever;
    t.pushes = 0;
  }
}

Open *context_range() {
  PyObject *value = nullptr;
  if (PyContextVar_Get(g_context_range, nullptr, &value) < 0) {
    PyErr_Clear();
  }
  if (value != nullptr && !Py_IS_TYPE(value, &OpenType)) {
    Py_CLEAR(value);
  }
  return reinterpret_cast<Open *>(value);
}

void set_context_range(Open *range) {
  PyObject *value = range != nullptr ? reinterpret_cast<PyObject *>(range) : Py_None;
  Py_XDECREF(PyContextVar_Set(g_context_range, value));
  PyErr_Clear();
}

Owner *library_task(PyThreadState *state) {
  ThreadTask &t = t_task;
  if (t.seen_at == state->context_ver) {
    return t.seen;
  }
  if (t.busy || finalizing()) {
    return nullptr;  // naming a task runs the program's code, which may be annotated
  }
  t.busy = true;
  PyObject *task = asyncio_task();
  const bool asyncio = task != nullptr;
  if (task == nullptr) {
    PyErr_Clear();
    task = trio_task();
  }
  Note *note = task != nullptr ? note_of(task, asyncio) : nullptr;
  Py_XDECREF(task);
  PyErr_Clear();
  t.busy = false;
  t.seen = note != nullptr ? &note->owner : nullptr;
  t.seen_at = state->context_ver;
  return t.seen;
}

uint32_t number_of(Owner *owner, const WarplensTasks *tasks) {
  const uint32_t now = recording();
  if (owner == nullptr) {
    return 0;
  }
  if (owner->number == 0 || owner->recording != now) {
    PyObject *holder = nullptr;
    const char *name = owner->name != nullptr ? utf8(owner->name, &holder) : "";
    owner->number =
        tasks->create(name, owner->library, owner->parent.recording == now ? owner->parent.id : 0);
    owner->recording = now != 0 ? now : recording();  // it may have begun just now
    Py_XDECREF(holder);
  }
  return owner->number;
}

void tell_task_slowly(PyThreadState *state) {
  ThreadTask &t = t_task;
  const uint64_t news = g_news.load(std::memory_order_acquire);  // first: what comes later is looked at again
  const WarplensTasks *tasks = agent_tasks();
  refresh(state);
  if (tasks == nullptr) {
    t.told_at = g_tasks_later.load(std::memory_order_relaxed) ? kNever : state->context_ver;
    t.news = news;
    return;
  }
  const KeptError error;
  Owner *owner = library_task(state);
  const bool frames = g_suspended.load(std::memory_order_acquire) != 0;
  if (frames) {
    Suspended *suspended = suspended_around(current_frame(state), owner != nullptr);
    owner = suspended != nullptr ? suspended : owner;
  }
  const uint32_t number = number_of(owner, tasks);
  if (number != t.told) {
    tasks->enter(number);
    t.told = number;
  }
  t.told_at = frames || t.busy || t.seen_at != state->context_ver ? kNever : state->context_ver;
  t.news = news;
}

}  // namespace warplens::binding
