// Python.h, and what differs between CPython 3.10 and 3.15, with and without the GIL.
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

// For what is reached only by threads that hold the GIL, where there is one, and never while Python runs. A thread that waits for
// CPython's own mutex is detached: one that wants all threads to stand still does not wait for it.
#if defined(Py_GIL_DISABLED)
class Mutex {
 public:
  void lock() { PyMutex_Lock(&mutex_); }
  void unlock() { PyMutex_Unlock(&mutex_); }

 private:
  PyMutex mutex_ = {};
};
using SlowMutex = Mutex;
#else
struct Mutex {
  void lock() {}
  void unlock() {}
};
using SlowMutex = std::mutex;
#endif
using Guard = std::lock_guard<Mutex>;

// An object that is made when it is first needed, by several threads at once if need be, and then kept for good. A `static` in a
// function would have threads wait for one that CPython may have stopped.
class Lazy {
 public:
  template <typename Make>
  PyObject *get(Make make) {
    PyObject *object = object_.load(std::memory_order_acquire);
    if (object == nullptr) [[unlikely]] {
      PyObject *made = make();
      if (made == nullptr || object_.compare_exchange_strong(object, made, std::memory_order_acq_rel)) {
        return made;
      }
      Py_DECREF(made);
    }
    return object;
  }

 private:
  std::atomic<PyObject *> object_{nullptr};
};

// The value of a key, or null; no exception either way. New reference: another thread may replace it at once.
inline PyObject *find_in(PyObject *dict, PyObject *key) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject *found = nullptr;
  const bool failed = PyDict_GetItemRef(dict, key, &found) < 0;
#else
  PyObject *found = Py_XNewRef(PyDict_GetItemWithError(dict, key));
  const bool failed = found == nullptr;
#endif
  if (failed) {
    PyErr_Clear();
  }
  return found;
}

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
