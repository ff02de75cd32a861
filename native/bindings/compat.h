// Python.h, and what differs between CPython 3.10 and 3.14, with and without the GIL.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>
#include <cstdint>
#include <mutex>

// Without the GIL a critical section guards one object; with it nothing is needed.
#if defined(Py_GIL_DISABLED)
#define WARPLENS_LOCK(op) Py_BEGIN_CRITICAL_SECTION(op)
#define WARPLENS_UNLOCK() Py_END_CRITICAL_SECTION()
#else
#define WARPLENS_LOCK(op) {
#define WARPLENS_UNLOCK() }
#endif

namespace warplens::binding {

// For what is reached only by threads that hold the GIL, where there is one, and never while Python runs.
#if defined(Py_GIL_DISABLED)
using Mutex = std::mutex;
#else
struct Mutex {
  void lock() {}
  void unlock() {}
};
#endif
using Guard = std::lock_guard<Mutex>;

// METH_FASTCALL functions do not have PyCFunction's signature; CPython asks for this cast.
template <typename F>
inline PyCFunction method(F *f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(f));
}

// None and "not given" are the same thing for every argument of NVTX.
inline PyObject *given(PyObject *o) {
  return o == Py_None ? nullptr : o;
}

inline PyObject *none_if_null(PyObject *o) {
  return Py_NewRef(o != nullptr ? o : Py_None);
}

// A depth that a tool returned, or None: negative values mean that it keeps none.
inline PyObject *depth_or_none(int depth) {
  if (depth < 0) {
    Py_RETURN_NONE;
  }
  return PyLong_FromLong(depth);
}

// Gives life again to an object of a static type that was kept when its last reference went.
inline void revive(PyObject *object, [[maybe_unused]] PyTypeObject *type) {
#if defined(Py_REF_DEBUG) || defined(Py_TRACE_REFS) || defined(Py_GIL_DISABLED)
  PyObject_Init(object, type);
#else
  Py_SET_REFCNT(object, 1);  // its type is as it was
#endif
}

// Sets aside the exception that is on its way through the program (a pop in its wake), and puts it back.
class KeptError {
 public:
  KeptError() { PyErr_Fetch(&type_, &value_, &traceback_); }
  ~KeptError() { PyErr_Restore(type_, value_, traceback_); }
  KeptError(const KeptError &) = delete;
  KeptError &operator=(const KeptError &) = delete;

 private:
  PyObject *type_ = nullptr;
  PyObject *value_ = nullptr;
  PyObject *traceback_ = nullptr;
};

}  // namespace warplens::binding
