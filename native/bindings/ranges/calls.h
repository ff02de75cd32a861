// The ranges of a profiled thread: one per call that is open, so that a return closes its own call and nothing else.
#pragma once

#include "bindings/domain.h"
#include "bindings/values/compat.h"

namespace warplens::binding {

// What calls of one code object, or of one C function, are called.
struct CallLabel {
  const void *key;  // the code object, or the C function's definition
  const void *check;
  nvtxStringHandle_t called;
  nvtxStringHandle_t resumed;
};

struct OpenCall {
  const void *frame;  // the Python frame: the call's own, or the caller of a C function
  uint32_t profile;   // Profile::serial
  bool c_function;
};

inline constexpr int kCallLabels = 256;

// Of one thread; freed with it.
struct ThreadCalls {
  OpenCall *calls;
  int count;
  int capacity;
  uint64_t epoch;  // what `labels` are good for
  CallLabel labels[kCallLabels];
};

// The calling thread's, or null without memory.
ThreadCalls *thread_calls();

// Room for one more. False without memory.
bool reserve_call(ThreadCalls *calls);

bool init_calls();

}  // namespace warplens::binding
