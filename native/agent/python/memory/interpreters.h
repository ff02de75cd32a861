// The interpreters of a CPython, and their locks.
#pragma once

#include "layout.h"

namespace warplens::agent {

struct PythonInterpreter {
  uintptr_t address;
  int64_t id;           // 0: the main one
  uintptr_t threads;    // the first thread state
  uintptr_t gil;        // its lock; 0 = none so far
  uintptr_t cond;       // signalled when it is let go
  uintptr_t switch_on;  // signalled by the thread that has taken it
};

//! [MT] Whether interpreters can be read now: after Py_Initialize, before Py_Finalize.
bool is_python_running(const PythonRuntime &python);

//! [MT] The interpreters there are, at most `most`; how many. Without a lock: one that comes or goes may be missing.
uint32_t python_interpreters(const PythonRuntime &python, PythonInterpreter *interpreters, uint32_t most);

}  // namespace warplens::agent
