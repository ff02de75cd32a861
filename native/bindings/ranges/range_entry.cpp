// Enters and exits ranges: decides where the entered code runs, and keeps what is open.
#include "range_entry.h"

#include <cstring>

#include "open.h"
#include "suspended.h"
#include "tasks.h"

namespace warplens::binding {

PyObject *g_enter_names[4] = {};

namespace {

std::atomic<PyObject *> g_driving_file{nullptr};  // kept for good
Mutex g_mutex;                                    // the lists of open ranges; no Python runs while it is held

PyObject *as_object(Open *open) {
  return reinterpret_cast<PyObject *>(open);
}

#if !defined(Py_GIL_DISABLED)
constexpr int kKept = 32;
Open *g_kept[kKept];
int g_kept_count = 0;
#endif

// New, and empty; null without memory.
Open *make_open() {
#if !defined(Py_GIL_DISABLED)
  if (g_kept_count > 0) [[likely]] {
    Open *open = g_kept[--g_kept_count];
    std::memset(reinterpret_cast<char *>(open) + sizeof(PyObject), 0, sizeof(Open) - sizeof(PyObject));
    revive(as_object(open), &OpenType);
    return open;
  }
#endif
  PyObject *made = OpenType.tp_alloc(&OpenType, 0);
  if (made == nullptr) {
    PyErr_Clear();
  }
  return reinterpret_cast<Open *>(made);
}

void open_dealloc(PyObject *o) {
  Open *open = reinterpret_cast<Open *>(o);
  PyObject *owned[] = {as_object(open->next), as_object(open->outer), open->kept};
  for (PyObject *object : owned) {
    Py_XDECREF(object);
  }
#if !defined(Py_GIL_DISABLED)
  if (g_kept_count < kKept) [[likely]] {
    g_kept[g_kept_count++] = open;
    return;
  }
#endif
  PyObject_Free(o);
}

// Whose code a range belongs to.
struct Place {
  Frame *direct;  // the frame that enters or leaves
  Frame *owner;
  int flags;  // of the owner: which of kSuspends
};

// Outwards from the frame that enters, through methods that enter for their callers (ExitStack.enter_context, the
// __enter__ that drives a @contextmanager generator) to the code whose block it is.
Place place_of(PyThreadState *state) {
  Frame *frame = python_frame(current_frame(state));
  Place place = {frame, frame, 0};
  Frame *coroutine = nullptr;  // one that was passed on the way
  for (int i = 0; frame != nullptr && i < 32; ++i) {
    const PyCodeObject *code = code_of(frame);
    const int flags = code->co_flags & kSuspends;
    place.owner = frame;
    place.flags = flags;
    const bool for_caller = enters_for_caller(code);
    const bool maybe = (flags & kGenerator) != 0 && (flags & kCoroutine) == 0;
    Frame *caller = for_caller || maybe ? python_caller_of(frame) : nullptr;
    if (caller == nullptr || !(for_caller || enters_for_caller(code_of(caller)))) {
      break;
    }
    coroutine = (flags & kCoroutine) != 0 ? frame : coroutine;
    frame = caller;
  }
  if (place.flags == 0 && coroutine != nullptr) {  // driven by a loop: a separate task
    place.owner = coroutine;
    place.flags = kCoroutine;
  }
  return place;
}

// The range that is the parent of a new one, where the agent cannot know: 0 where a push/pop range is nearer.
nvtxRangeId_t parent_of(const RangePoint &point) {
  const ThreadTask &t = t_task;
  if (point.id == 0 || point.recording != recording() ||
      (point.thread == t.state && t.pushes > point.pushes)) {
    return 0;
  }
  return point.id;
}

// The outermost of the frames that were interrupted together with `frame`.
Frame *root_of(Frame *frame) {
  for (int i = 0; i < 200; ++i) {
    Frame *caller = python_caller_of(frame);
    if (caller == nullptr || (code_of(caller)->co_flags & kSuspends) == 0) {
      break;
    }
    frame = caller;
  }
  return frame;
}

// A frame as a separate task, with the innermost range around it as parent.
Suspended *as_task(Frame *frame, const char *library, Owner *around) {
  if (Suspended *found = find_suspended(frame); found != nullptr) {
    return found;
  }
  RangePoint parent;
  if (around != nullptr) {
    const Guard lock(g_mutex);
    const Open *top = around->top;
    while (top != nullptr && top->point.id == 0) {
      top = top->below;
    }
    parent = top != nullptr ? top->point : around->parent;
  }
  return add_suspended(frame, library, parent);
}

// Was `frame` called by `outer`, through nothing but generators that drive others?
bool driven_by(Frame *frame, const Frame *outer) {
  for (int i = 0; i < 32 && frame != outer; ++i) {
    frame = python_caller_of(frame);
    if (frame == nullptr || code_of(frame)->co_filename != g_driving_file) {
      return false;
    }
  }
  return frame == outer;
}

// Finds the task that the range belongs to.
Owner *owner_at(const Place &place, PyThreadState *state, Suspended **suspended) {
  Owner *task = library_task(state);
  *suspended = nullptr;
  if (g_suspended.load(std::memory_order_relaxed) != 0) {
    *suspended = suspended_around(place.owner, task != nullptr);
  }
  if ((place.flags & kCoroutine) != 0) {
    if (*suspended == nullptr && task == nullptr) {
      *suspended = as_task(root_of(place.owner), "coroutine", nullptr);
    }
  } else if (*suspended == nullptr || !driven_by(place.owner, (*suspended)->frame)) {
    *suspended = as_task(place.owner, "generator", *suspended != nullptr ? *suspended : task);
  }
  return *suspended != nullptr ? *suspended : task;
}

void start_in_task(Open *open, const Place &place, Event *event, int32_t state, const WarplensTasks *tasks) {
  PyThreadState *thread = thread_state();
  refresh(thread);
  Suspended *suspended = nullptr;
  Owner *owner = owner_at(place, thread, &suspended);
  const uint32_t number = number_of(owner, tasks);
  const bool first = owner != nullptr && owner->top == nullptr;
  const nvtxRangeId_t parent = first ? parent_of(owner->parent) : 0;
  open->point.id =
      send(event, state, [&](nvtxDomainHandle_t domain, const nvtxEventAttributes_t *attributes) {
        return tasks->start(domain, attributes, number, parent);
      });
  open->point.recording = recording();
  open->point.thread = t_task.state;
  open->point.pushes = t_task.pushes;
  if (owner != nullptr) {
    open->suspended = suspended;
    open->kept = suspended == nullptr ? Py_NewRef(keeper_of(owner)) : nullptr;
    const Guard lock(g_mutex);
    open->owner = owner;
    open->below = owner->top;
    owner->top = open;
  }
  if ((place.flags & kCoroutine) != 0 && open->point.id != 0) {  // else it is nobody's parent
    open->outer = context_range();
    set_context_range(open);
  }
}

// Out of the task's list. Returns the frame's task whose last range it was.
Suspended *unlink(Open *open) {
  const Guard lock(g_mutex);
  Owner *owner = open->owner;
  if (owner == nullptr) {
    return nullptr;
  }
  open->owner = nullptr;
  Open **at = &owner->top;
  while (*at != nullptr && *at != open) {
    at = &(*at)->below;
  }
  if (*at != nullptr) {
    *at = open->below;
  }
  return owner->top == nullptr ? open->suspended : nullptr;
}

// The context goes back to what it held, unless this is another context (a generator that is closed by the collector).
void leave_context(Open *open) {
  Open *held = context_range();
  Open *outer = open->outer;
  while (outer != nullptr && outer->ended) {
    outer = outer->outer;
  }
  Py_XINCREF(as_object(outer));
  if (held == open) {
    set_context_range(outer);
  }
  Py_XDECREF(as_object(held));
  // Chains of ended ranges are not kept: tasks that start one another for ever would grow them.
  Open *before = open->outer;
  open->outer = outer;
  Py_XDECREF(as_object(before));
}

// Ends it; the reference is the caller's.
void finish(Open *open, Event *saying = nullptr) {
  const KeptError error;
  if (open->pushed) {
    const int32_t state = listener();
    if (state == open->state) {
      pop(open->domain, state, saying);
    }
  } else if (open->state == listener()) {
    end(open->domain, open->state, open->point.id, saying);
  }
  open->ended = true;
  Suspended *last = unlink(open);
  if (last != nullptr) {
    drop_suspended(last);
  }
  leave_context(open);
  Py_CLEAR(open->kept);
}

void add(Entered *entered, Open *open) {
  const Guard lock(g_mutex);
  open->next = entered->open.load(std::memory_order_relaxed);
  entered->open.store(open, std::memory_order_relaxed);
}

Open **link_where(Entered *entered, bool (*fits)(const Open *, const Place &, uint64_t), const Place &place,
                  uint64_t thread, Open **before) {
  *before = nullptr;
  for (Open *at = entered->open.load(std::memory_order_relaxed); at != nullptr; at = at->next) {
    if (fits(at, place, thread)) {
      return before;
    }
    *before = at;
  }
  return nullptr;
}

bool of_frame(const Open *open, const Place &place, uint64_t) {
  return open->frame == place.direct;
}

// Entered by one method and left by another: any in code that can suspend, else what this thread entered.
bool of_thread(const Open *open, const Place &place, uint64_t thread) {
  return !open->pushed && (place.flags != 0 || open->point.thread == thread);
}

// The open range that a frame leaves. The reference is the caller's; null where it left a plain push.
Open *take(Entered *entered, const Place &place, uint64_t thread) {
  const Guard lock(g_mutex);
  Open *before = nullptr;
  if (link_where(entered, of_frame, place, thread, &before) == nullptr &&
      link_where(entered, of_thread, place, thread, &before) == nullptr) {
    return nullptr;
  }
  Open *found = before != nullptr ? before->next : entered->open.load(std::memory_order_relaxed);
  if (before != nullptr) {
    before->next = found->next;
  } else {
    entered->open.store(found->next, std::memory_order_relaxed);
  }
  found->next = nullptr;
  return found;
}

}  // namespace

PyTypeObject OpenType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx._binding.OpenRange",
    .tp_basicsize = sizeof(Open),
    .tp_dealloc = open_dealloc,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
};

bool init_range_entry() {
  const char *names[] = {"__enter__", "__aenter__", "enter_context", "enter_async_context"};
  for (int i = 0; i < 4; ++i) {
    if (g_enter_names[i] == nullptr && (g_enter_names[i] = PyUnicode_InternFromString(names[i])) == nullptr) {
      return false;
    }
  }
  return init_frames() && init_tasks();
}

void drives(PyObject *function) {
  PyObject *code = g_driving_file == nullptr ? PyObject_GetAttrString(function, "__code__") : nullptr;
  if (code != nullptr && PyCode_Check(code)) {
    g_driving_file = Py_NewRef(reinterpret_cast<PyCodeObject *>(code)->co_filename);
  }
  Py_XDECREF(code);
  PyErr_Clear();
}

void enter_slowly(Entered *entered, Event *event, int32_t state) {
  const KeptError error;
  const Place place = place_of(thread_state());
  if (place.owner == nullptr) {
    push(event, state);
    return;
  }
  const bool direct_suspends = (code_of(place.direct)->co_flags & kSuspends) != 0;
  if (place.flags == 0 && !direct_suspends && entered->open.load(std::memory_order_relaxed) == nullptr) {
    push(event, state);
    return;
  }
  Open *open = make_open();
  if (open == nullptr) {
    return;
  }
  open->frame = place.direct;
  open->domain = event->domain;
  open->state = state;
  if (place.flags == 0) {
    open->pushed = true;
    push(event, state);
    open->point.thread = thread_state()->id;
  } else if (const WarplensTasks *tasks = agent_tasks(); tasks != nullptr) {
    start_in_task(open, place, event, state, tasks);
  } else {
    open->point.id = start(event, state);
    open->point.thread = thread_state()->id;
  }
  add(entered, open);
}

void exit_slowly(Entered *entered, Domain *domain, int32_t state, Event *last) {
  PyThreadState *thread = thread_state();
  Frame *direct = python_frame(current_frame(thread));
  const int flags = direct != nullptr ? code_of(direct)->co_flags & kSuspends : 0;
  Open *open = take(entered, {direct, direct, flags}, thread->id);
  if (open != nullptr) {
    finish(open, last);
    Py_DECREF(as_object(open));
  } else if (flags == 0 && state > 0) {
    pop(domain, state, last);
  }
}

void abandon(Entered *entered) {
  Open *open = entered->open.exchange(nullptr, std::memory_order_relaxed);
  while (open != nullptr) {
    Open *next = open->next;
    open->next = nullptr;
    if (!open->pushed) {
      finish(open);
    }
    Py_DECREF(as_object(open));
    open = next;
  }
}

}  // namespace warplens::binding
