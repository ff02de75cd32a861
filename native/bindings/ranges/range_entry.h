// Enters and exits a range around a with block.
// Every object that can be entered uses it.
//
// Decided at entry: where the code that enters can be interrupted (a coroutine, a generator), the range is a start/end range
// of its task, for push/pop ranges of interleaved tasks would close each other. Else it is a push/pop range.
#pragma once

#include "event.h"
#include "frame.h"

namespace warplens::binding {

struct Open;

// A member of objects that can be entered; null: nothing but pushes, which nobody needs to remember.
struct Entered {
  std::atomic<Open *> open{nullptr};
  std::atomic<bool> unheard{false};  // it was entered while no tool listened
};

bool init_range_entry();

// Methods that enter for somebody else: what they enter belongs to their caller.
extern PyObject *g_enter_names[4];

inline bool enters_for_caller(const PyCodeObject *code) {
  const PyObject *name = code->co_name;
  return name == g_enter_names[0] || name == g_enter_names[1] || name == g_enter_names[2] ||
         name == g_enter_names[3];
}

// Generators of the file that `function` is from drive others, and are one task with them. Sets no exception.
void drives(PyObject *function);

void enter_slowly(Entered *entered, Event *event, int32_t state);
void exit_slowly(Entered *entered, Domain *domain, int32_t state, Event *last);
void abandon(Entered *entered);

// `state` is what listener() said, and > 0.
inline void enter_range(Entered *entered, Event *event, int32_t state) {
  PyThreadState *thread = thread_state();
  Frame *frame = current_frame(thread);
  const PyCodeObject *code = frame != nullptr ? code_of(frame) : nullptr;
  if (code != nullptr && (code->co_flags & kSuspends) == 0 && !enters_for_caller(code) &&
      entered->open.load(std::memory_order_relaxed) == nullptr) [[likely]] {
    push(event, state, thread);
    return;
  }
  enter_slowly(entered, event, state);
}

// `last`: what the end says anew, see pop().
inline void exit_range(Entered *entered, Domain *domain, int32_t state, Event *last = nullptr) {
  if (entered->open.load(std::memory_order_relaxed) == nullptr &&
      !entered->unheard.load(std::memory_order_relaxed)) [[likely]] {
    pop(domain, state, last);
    return;
  }
  exit_slowly(entered, domain, state, last);
}

// When the object goes: ranges that it is still in end.
inline void leave_all(Entered *entered) {
  if (entered->open.load(std::memory_order_relaxed) != nullptr) [[unlikely]] {
    abandon(entered);
  }
}

}  // namespace warplens::binding
