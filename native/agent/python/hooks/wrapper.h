// Callables of the agent that replace functions of the program, look like them, and make no frame.
#pragma once

#include "capi.h"

namespace warplens::agent::python {

//! What a wrapper does when it is called: it calls `function`, and returns what that returned.
using WrappedCall = Object *(*)(Object *function, void *data, Object *arguments, Object *keywords);

//! The type of the wrappers of the interpreter that the thread is in, each interpreter has its own; null with an exception.
Object *make_wrapper_type();

//! Something of that type: called, it does `call`. All attributes are those of `function`, also as it is set, bound and pickled; null
//! with an exception.
Object *wrap(Object *type, Object *function, WrappedCall call, void *data);

}  // namespace warplens::agent::python
