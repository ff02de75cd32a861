// Tracks generators with open ranges.
// Each is a separate task, identified by its frame. Calls from inside it belong to it; the work of
// its consumer while it waits does not.
#pragma once

#include "frame.h"
#include "tasks.h"

namespace warplens::binding {

struct Suspended : Owner {
  Frame *frame = nullptr;
  const PyCodeObject *code = nullptr;  // only compared
  Suspended *next = nullptr;
};

// Walks outwards from `frame` to the first frame that is known here. `in_task`: a library's task runs, so the walk ends
// at the loop that drives it.
Suspended *suspended_around(Frame *frame, bool in_task);

// The one for `frame`; null where there is none.
Suspended *find_suspended(Frame *frame);

// Makes it. Null without memory. Ranges that come one after the other, of one generator or of calls of one generator function
// by the same thread within the same parent, stay one task: a loop does not define a task per turn.
Suspended *add_suspended(Frame *frame, const char *library, const RangePoint &parent);

// Its last range has ended.
void drop_suspended(Suspended *suspended);

// The next frame outwards that is Python code of the program.
Frame *python_caller_of(Frame *frame);
Frame *python_frame(Frame *frame);

}  // namespace warplens::binding
