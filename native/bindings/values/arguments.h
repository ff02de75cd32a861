// Reads positional and keyword arguments of vectorcall and fastcall functions.
#pragma once

#include <initializer_list>

#include "bindings/ranges/event.h"
#include "compat.h"

namespace warplens::binding {

// The parameters of one function, in order: the first `positional` may be given by position, the first `required` must
// be given. Lives for good; the names are interned at import.
class Signature {
 public:
  Signature(const char *function, int positional, int required, std::initializer_list<const char *> names);

  const char *function() const { return function_; }

  // Reads into `out` (an entry per parameter, null where not given). False with TypeError.
  bool read(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out) const;

  static bool intern_all();

 private:
  static constexpr int kMost = 12;

  int find(PyObject *name) const;

  const char *function_;
  int positional_;
  int required_;
  int count_ = 0;
  const char *names_[kMost] = {};
  PyObject *interned_[kMost] = {};
  Signature *next_;
};

// The values of one call, with fewer words.
template <int N>
struct Values {
  PyObject *at[N] = {};
  bool read(const Signature &signature, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
    return signature.read(args, nargs, kwnames, at);
  }
  PyObject *operator[](int i) const { return at[i]; }
};

// message, color, domain, category, payload.
bool read_event_arguments(const Signature &signature, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames, Arguments *out);

extern const Signature g_annotate;

}  // namespace warplens::binding
