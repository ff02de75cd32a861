// The type Profile: every call of a Python or C function is a range.
#pragma once

#include "bindings/values/compat.h"
#include "calls.h"

namespace warplens::binding {

// One that is not active restores, on each thread, what was there before it; threads do so at their next call or return.
struct Profile {
  PyObject_HEAD bool linenos;
  bool c_functions;
  std::atomic<bool> active;
  uint32_t serial;
  PyObject *labels;    // address -> (what has it, label, label when resumed)
  PyObject *before;    // thread state's id -> what it had before, a capsule over Before
  PyObject *new_hook;  // for threading.setprofile
  PyObject *old_hook;
};

extern PyTypeObject ProfileType;

bool init_profile();

inline Profile *as_profile(PyObject *o) {
  return reinterpret_cast<Profile *>(o);
}

// NVTX's domain of all of them; there once one was enabled.
extern Domain *g_profile_domain;

// What CPython calls for every call and return; the argument is the Profile.
int on_profile_event(PyObject *self, PyFrameObject *frame, int what, PyObject *argument);

// The names of a code object's calls or, where that is null, of a C function's. `state` > 0 is the listener.
const CallLabel &label_for(Profile *self, ThreadCalls *calls, PyCodeObject *code,
                           const PyMethodDef *definition, int32_t state);

// Sets on_profile_event on every thread, and on those that are to come.
void install_everywhere(Profile *self);

// For threads that begin later, nothing any more.
void unhook_new_threads(Profile *self);

// Gives the calling thread back what it had, unless somebody has taken over since.
void restore_here(Profile *self);

}  // namespace warplens::binding
