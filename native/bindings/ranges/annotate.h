// The type `annotate`: a range around a with block or around every call of a function.
#pragma once

#include "bindings/values/compat.h"
#include "event.h"
#include "range_entry.h"

namespace warplens::binding {

struct Annotate {
  PyObject_HEAD Event event;
  Entered entered;
  PyObject *
      late;  // a payload set since the last entry or exit: of the begin, where that comes next, else of the end
};

extern PyTypeObject AnnotateType;

// An annotation in a domain; the arguments' own domain does not count. New reference, or null with TypeError.
PyObject *make_annotate(Domain *domain, const Arguments &arguments);

// Makes the type ready, with its context methods.
bool init_annotate();

}  // namespace warplens::binding
