#include "arguments.h"

namespace warpline::binding {

namespace {

constexpr const char *kEventNames[] = {"message", "color", "domain", "category", "payload"};
constexpr const char *kPopNames[] = {"domain"};

int find(const Signature &signature, PyObject *name) {
  for (int i = 0; i < signature.count; ++i) {
    if (signature.interned[i] == name) {
      return i;
    }
  }
  for (int i = 0; i < signature.count; ++i) {
    if (PyUnicode_Compare(signature.interned[i], name) == 0) {
      return i;
    }
  }
  return -1;
}

}  // namespace

Signature g_annotate = {"annotate", 5, 5, kEventNames};
Signature g_mark = {"mark", 5, 5, kEventNames};
Signature g_push_range = {"push_range", 5, 5, kEventNames};
Signature g_start_range = {"start_range", 5, 5, kEventNames};
Signature g_pop_range = {"pop_range", 1, 1, kPopNames};

bool intern(Signature *signature) {
  for (int i = 0; i < signature->count; ++i) {
    if (signature->interned[i] == nullptr &&
        (signature->interned[i] = PyUnicode_InternFromString(signature->names[i])) == nullptr) {
      return false;
    }
  }
  return true;
}

bool intern_signatures() {
  return intern(&g_annotate) && intern(&g_mark) && intern(&g_push_range) && intern(&g_start_range) &&
         intern(&g_pop_range);
}

bool read_arguments(const Signature &signature, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames,
                    PyObject **out) {
  if (nargs > signature.positional) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional argument%s (%zd given)",
                 signature.function, signature.positional, signature.positional == 1 ? "" : "s", nargs);
    return false;
  }
  for (Py_ssize_t i = 0; i < nargs; ++i) {
    out[i] = args[i];
  }
  const Py_ssize_t keywords = kwnames != nullptr ? PyTuple_GET_SIZE(kwnames) : 0;
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject *name = PyTuple_GET_ITEM(kwnames, i);
    const int at = find(signature, name);
    if (at < 0) {
      PyErr_Format(PyExc_TypeError, "%s() got an unexpected keyword argument %R", signature.function, name);
      return false;
    }
    if (out[at] != nullptr) {
      PyErr_Format(PyExc_TypeError, "%s() got multiple values for argument %R", signature.function, name);
      return false;
    }
    out[at] = args[nargs + i];
  }
  return true;
}

bool read_event_arguments(const Signature &signature, PyObject *const *args, Py_ssize_t nargs,
                          PyObject *kwnames, Arguments *out) {
  PyObject *values[5] = {};
  if (!read_arguments(signature, args, nargs, kwnames, values)) {
    return false;
  }
  *out = {values[0], values[1], values[2], values[3], values[4]};
  return true;
}

}  // namespace warpline::binding
