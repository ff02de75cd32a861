// Parses arguments against a signature; the names of keywords are interned once.
#include "arguments.h"

namespace warplens::binding {

namespace {

Signature *g_first = nullptr;

}  // namespace

const Signature g_annotate("annotate", 5, 0, {"message", "color", "domain", "category", "payload"});

Signature::Signature(const char *function, int positional, int required,
                     std::initializer_list<const char *> names)
    : function_(function), positional_(positional), required_(required), next_(g_first) {
  for (const char *name : names) {
    names_[count_++] = name;
  }
  g_first = this;
}

bool Signature::intern_all() {
  for (Signature *s = g_first; s != nullptr; s = s->next_) {
    for (int i = 0; i < s->count_; ++i) {
      if (s->interned_[i] == nullptr &&
          (s->interned_[i] = PyUnicode_InternFromString(s->names_[i])) == nullptr) {
        return false;
      }
    }
  }
  return true;
}

int Signature::find(PyObject *name) const {
  for (int i = 0; i < count_; ++i) {
    if (interned_[i] == name) {
      return i;
    }
  }
  for (int i = 0; i < count_; ++i) {
    if (PyUnicode_Compare(interned_[i], name) == 0) {
      return i;
    }
  }
  return -1;
}

bool Signature::read(PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out) const {
  if (nargs > positional_) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional argument%s (%zd given)", function_,
                 positional_, positional_ == 1 ? "" : "s", nargs);
    return false;
  }
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    out[i] = args[i];
  }
  const Py_ssize_t keywords = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject *name = PyTuple_GET_ITEM(kwnames, i);
    const int at = find(name);
    if (at < 0) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", function_, name);
      return false;
    }
    if (out[at] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument %R", function_, name);
      return false;
    }
    out[at] = args[nargs + i];
  }
  for (int i = 0; i < required_; ++i) {
    if (out[i] == nullptr) {
      PyErr_Format(PyExc_TypeError, "%s() missing required argument '%s'", function_, names_[i]);
      return false;
    }
  }
  return true;
}

bool read_event_arguments(const Signature &signature, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames, Arguments *out) {
  Values<5> values;
  if (!values.read(signature, args, nargs, kwnames)) {
    return false;
  }
  *out = {values[0], values[1], values[2], values[3], values[4]};
  return true;
}

}  // namespace warplens::binding
