// An open range of an object that was entered, in code that can suspend.
#pragma once

#include "bindings/values/compat.h"
#include "event.h"
#include "suspended.h"

namespace warplens::binding {

struct Open {
  PyObject_HEAD Open *next;  // the object's other open ranges, owned
  Open *below;               // the task's next outer open range
  Open *outer;               // what the context held before, owned
  Owner *owner;              // the task; null: none
  PyObject *kept;            // what keeps a library's task's Owner alive, owned
  Suspended *suspended;      // the owner, where it is a frame
  Frame *frame;              // the frame that entered it
  Domain *domain;
  RangePoint point;
  int32_t state;  // the listener that knows of the range
  bool pushed;    // pushed after all: for plain code, through a generator that drives nothing itself
  bool ended;
};

extern PyTypeObject OpenType;

}  // namespace warplens::binding
