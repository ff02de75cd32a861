// Stands for an object of the program, and is told of what one of its methods takes and gives.
#pragma once

#include "capi.h"

namespace warplens::agent::python {

//! The type of the proxies of the interpreter that the thread is in; null with an exception.
Object *make_proxy_type();

//! All attributes are those of `object`, but its method `method`, a literal: `before` is told of its first argument before it is called,
//! `after` of what it has returned. Each may be null; no exception is set, before and after. Null with an exception.
Object *make_proxy(Object *type, Object *object, const char *method, void (*after)(Object *result),
                   void (*before)(Object *argument));

}  // namespace warplens::agent::python
