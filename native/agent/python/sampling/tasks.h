// Finds the asyncio task that a stack belongs to.
#pragma once

#include <string>

#include "agent/python/memory/layout.h"

namespace warplens::agent {

//! [MT] The name of the task whose coroutine that is. `handle`: what the event loop is running, the `self` of Handle._run. False where
//! it is no task of asyncio's own loops. Throws bad_alloc.
bool read_task_name(const PythonRuntime &python, uintptr_t handle, uintptr_t coroutine, std::string &name);

}  // namespace warplens::agent
