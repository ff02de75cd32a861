// __enter__ and __exit__ for types whose objects are entered millions of times a second.
//
// Up to CPython 3.13 a with block makes a bound method for each of the two, at the cost of a garbage-collected object
// from the allocator. These descriptors hand out small bound objects from a free list instead. From 3.14 on, with
// blocks call the descriptor itself with the object as first argument (METHOD_DESCRIPTOR), and nothing is made.
#pragma once

#include "bindings/values/compat.h"

namespace warplens::binding {

using SpecialFunction = PyObject *(*)(PyObject *self);

// Adds both to a type that is ready; new objects of its subclasses inherit them.
bool add_context_methods(PyTypeObject *type, SpecialFunction enter, SpecialFunction exit);

}  // namespace warplens::binding
