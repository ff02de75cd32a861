// Reads positional and keyword arguments of vectorcall and fastcall functions.
#pragma once

#include "compat.h"
#include "event.h"

namespace warpline::binding {

// Names of one function's parameters, in order; the first `positional` may be given by position.
struct Signature {
  const char *function;
  int positional;
  int count;
  const char *const *names;
  PyObject *interned[8] = {};
};

bool intern(Signature *signature);

// Reads into `out` (count entries, null where not given). False with TypeError.
bool read_arguments(const Signature &signature, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                    PyObject **out);

// message, color, domain, category, payload.
bool read_event_arguments(const Signature &signature, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames, Arguments *out);

// The signatures, interned at import.
extern Signature g_annotate, g_mark, g_push_range, g_start_range, g_pop_range;
bool intern_signatures();

}  // namespace warpline::binding
