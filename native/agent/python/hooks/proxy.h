// Stands for an object of the program, and reports the arguments and the result of one of its
// methods.
#pragma once

#include "capi.h"

namespace warplens::agent::python {

//! The type of the proxies of the interpreter that the thread is in; null with an exception.
Object *make_proxy_type();

//! All attributes are those of `object`, except its method `method`, a literal: the proxy calls
//! `before` with the first argument before the method runs, and `after` with the result. Each may be
//! null; no exception is set, before and after. Null with an exception.
Object *make_proxy(Object *type, Object *object, const char *method, void (*after)(Object *result),
                   void (*before)(Object *argument));

}  // namespace warplens::agent::python
