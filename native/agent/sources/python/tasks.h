// Records tasks of executors and pools.
#pragma once

#include "agent/python/hooks/wrapper.h"
#include "parts.h"

namespace warplens::agent::python {

//! A module has been imported that may run tasks.
void tasks_in(Interpreter &interpreter, std::string_view module_name, Object *module);

//! Puts a wrapper in the place of a function of a module or a class; `call` gets the interpreter. A notice where there is no such.
void wrap_in(Interpreter &interpreter, Object *holder, const char *name, WrappedCall call);

}  // namespace warplens::agent::python
