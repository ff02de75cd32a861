// The table of generators with open ranges, by frame.
#include "suspended.h"

#include <new>

#include "open.h"

namespace warplens::binding {

std::atomic<int> g_suspended{0};

namespace {

// Deep recursion under a generator is looked through this far; the same depth is found again at a range's end.
constexpr int kMostFrames = 200;
constexpr int kBuckets = 256;

Suspended *g_buckets[kBuckets];
Mutex g_mutex;  // no Python runs while it is held

// The number of a generator that has ended, for the next one of its code within the same parent and on the same thread.
struct Former {
  const PyCodeObject *code;
  const PyObject *name;
  uint64_t parent;
  uint64_t thread;
  uint32_t number;
  uint32_t recording;
};
constexpr int kFormer = 512;
Former g_former[kFormer];

Former &former_of(const PyCodeObject *code, uint64_t parent, uint64_t thread) {
  const uintptr_t key = reinterpret_cast<uintptr_t>(code);
  return g_former[(key >> 4 ^ key >> 12 ^ parent ^ parent >> 32 ^ thread) % kFormer];
}

Suspended **bucket_of(const Frame *frame) {
  const uintptr_t key = reinterpret_cast<uintptr_t>(frame);
  return &g_buckets[(key >> 4 ^ key >> 12) % kBuckets];
}

// Between C and Python, some CPythons have internal code.
bool is_shim(const PyCodeObject *code) {
  return PyTuple_GET_SIZE(code->co_consts) == 0 &&
         (PyUnicode_GET_LENGTH(code->co_filename) == 0 ||
          PyUnicode_CompareWithASCIIString(code->co_filename, "<shim>") == 0);
}

}  // namespace

Suspended *find_suspended(Frame *frame) {
  const Guard lock(g_mutex);
  Suspended *at = *bucket_of(frame);
  while (at != nullptr && at->frame != frame) {
    at = at->next;
  }
  return at;
}

Frame *python_frame(Frame *frame) {
  while (frame != nullptr) {
    const PyCodeObject *code = code_of(frame);
    if (code != nullptr && !is_shim(code)) {
      break;
    }
    frame = caller_of(frame);
  }
  return frame;
}

Frame *python_caller_of(Frame *frame) {
  return python_frame(caller_of(frame));
}

Suspended *suspended_around(Frame *frame, bool in_task) {
  bool coroutine = false;
  frame = python_frame(frame);
  for (int i = 0; frame != nullptr && i < kMostFrames; ++i, frame = python_caller_of(frame)) {
    const int flags = code_of(frame)->co_flags;
    if ((flags & kSuspends) != 0) {
      Suspended *found = find_suspended(frame);
      if (found != nullptr) {
        return found;
      }
      coroutine |= (flags & kCoroutine) != 0;
    } else if (coroutine && in_task) {
      return nullptr;  // a plain function that drives a coroutine: the loop
    }
  }
  return nullptr;
}

Suspended *add_suspended(Frame *frame, const char *library, const RangePoint &parent) {
  Suspended *made = new (std::nothrow) Suspended;
  if (made == nullptr) {
    return nullptr;
  }
  PyCodeObject *code = code_of(frame);
#if PY_VERSION_HEX >= 0x030B0000
  made->name = Py_NewRef(code->co_qualname);
#else
  made->name = Py_NewRef(code->co_name);
#endif
  made->library = library;
  made->parent = parent;
  made->frame = frame;
  made->code = code;
  const Guard lock(g_mutex);
  Former &former = former_of(code, parent.id, t_task.state);
  if (former.code == code && former.name == made->name && former.parent == parent.id &&
      former.thread == t_task.state) {
    made->number = former.number;
    made->recording = former.recording;
    former = {};
  }
  Suspended **bucket = bucket_of(frame);
  made->next = *bucket;
  *bucket = made;
  if (g_suspended.fetch_add(1, std::memory_order_acq_rel) == 0) {
    g_news.fetch_add(1, std::memory_order_release);
  }
  return made;
}

void drop_suspended(Suspended *suspended) {
  {
    const Guard lock(g_mutex);
    Suspended **at = bucket_of(suspended->frame);
    while (*at != nullptr && *at != suspended) {
      at = &(*at)->next;
    }
    if (*at != nullptr) {
      *at = suspended->next;
    }
    former_of(suspended->code, suspended->parent.id, t_task.state) = {
        suspended->code, suspended->name,   suspended->parent.id,
        t_task.state,    suspended->number, suspended->recording};
    g_suspended.fetch_sub(1, std::memory_order_relaxed);
  }
  t_task.told_at = kNever;  // this thread may have told its number
  Py_XDECREF(suspended->name);
  delete suspended;
}

}  // namespace warplens::binding
