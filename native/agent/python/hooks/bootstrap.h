// Brings the agent into each interpreter of an unchanged program.
#pragma once

#include "capi.h"

namespace warplens::agent::python {

//! Before main: `install` is called once in each interpreter of the process, by a thread that is attached to it and may run Python
//! code, before the program's own code begins; `number` is the interpreter's, 0 the main one. False where there is no interpreter yet.
bool begin_bootstrap(void (*install)(void *interpreter, int64_t number));

//! From now on calls `each` for each code that an interpreter begins to run as a whole: the body of a
//! module, the argument of exec(). No exception is set. One at most.
void tell_of_code(void (*each)(int64_t interpreter, Object *code));

}  // namespace warplens::agent::python
