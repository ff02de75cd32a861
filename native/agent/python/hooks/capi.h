// Finds the functions of the interpreter in the process.
// They are found by name, since one agent serves every version, and programs without Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace warplens::agent::python {

struct Object;  // PyObject: only ever passed on
using Size = ptrdiff_t;

// PyMethodDef; it must live as long as the process.
struct MethodDef {
  const char *name;
  void *function;
  int flags;
  const char *doc;
};
inline constexpr int kArguments = 0x0001;  // METH_VARARGS
inline constexpr int kKeywords = 0x0002;
inline constexpr int kFast = 0x0080;

// PyType_Slot and PyType_Spec.
struct TypeSlot {
  int slot;
  void *function;
};
struct TypeSpec {
  const char *name;
  int size;
  int item_size;
  unsigned flags;
  TypeSlot *slots;
};

using ProfileHook = int (*)(Object *self, Object *frame, int what, Object *argument);
using AuditHook = int (*)(const char *event, Object *arguments, void *data);

// X(result, name, parameters)
#define WARPLENS_PYTHON_FUNCTIONS(X)                                      \
  X(void, Py_IncRef, (Object *))                                          \
  X(void, Py_DecRef, (Object *))                                          \
  X(int, Py_IsInitialized, ())                                            \
  X(const char *, Py_GetVersion, ())                                      \
  X(int, PySys_AddAuditHook, (AuditHook, void *))                         \
  X(Object *, PyImport_ImportModule, (const char *))                      \
  X(Object *, PyImport_GetModuleDict, ())                                 \
  X(void, PyEval_SetProfile, (ProfileHook, Object *))                     \
  X(Object *, PyFrame_GetCode, (Object *))                                \
  X(int, PyCode_Addr2Line, (Object *, int))                               \
  X(Object *, PyObject_Call, (Object *, Object *, Object *))              \
  X(Object *, PyObject_GetAttr, (Object *, Object *))                     \
  X(int, PyObject_SetAttr, (Object *, Object *, Object *))                \
  X(Object *, PyObject_GetAttrString, (Object *, const char *))           \
  X(int, PyObject_SetAttrString, (Object *, const char *, Object *))      \
  X(Object *, PyObject_Type, (Object *))                                  \
  X(Object *, PyObject_Str, (Object *))                                   \
  X(Object *, PyObject_Repr, (Object *))                                  \
  X(void, PyObject_GC_UnTrack, (void *))                                  \
  X(void, PyObject_GC_Del, (void *))                                      \
  X(void, PyObject_ClearWeakRefs, (Object *))                             \
  X(Object *, PyException_GetTraceback, (Object *))                       \
  X(Object *, PyMapping_GetItemString, (Object *, const char *))          \
  X(Object *, PyDict_GetItem, (Object *, Object *))                       \
  X(Object *, PyDict_GetItemString, (Object *, const char *))             \
  X(int, PyDict_DelItemString, (Object *, const char *))                  \
  X(int, PyList_Append, (Object *, Object *))                             \
  X(Object *, PyTuple_New, (Size))                                        \
  X(int, PyTuple_SetItem, (Object *, Size, Object *))                     \
  X(Object *, PyTuple_GetItem, (Object *, Size))                          \
  X(Size, PyTuple_Size, (Object *))                                       \
  X(long long, PyLong_AsLongLong, (Object *))                             \
  X(Object *, PyLong_FromLongLong, (long long))                           \
  X(const char *, PyUnicode_AsUTF8AndSize, (Object *, Size *))            \
  X(Object *, PyUnicode_FromStringAndSize, (const char *, Size))          \
  X(Object *, PyUnicode_InternFromString, (const char *))                 \
  X(Object *, PyCMethod_New, (MethodDef *, Object *, Object *, Object *)) \
  X(Object *, PyMethod_New, (Object *, Object *))                         \
  X(Object *, PyType_FromSpec, (TypeSpec *))                              \
  X(Object *, PyType_GenericAlloc, (Object *, Size))                      \
  X(Object *, PyCapsule_New, (void *, const char *, void (*)(Object *)))  \
  X(void *, PyCapsule_GetPointer, (Object *, const char *))               \
  X(void, PyErr_Fetch, (Object **, Object **, Object **))                 \
  X(void, PyErr_Restore, (Object *, Object *, Object *))                  \
  X(void, PyErr_Clear, ())                                                \
  X(void *, PyInterpreterState_Get, ())                                   \
  X(int64_t, PyInterpreterState_GetID, (void *))

struct CApi {
#define WARPLENS_MEMBER(result, name, parameters) result(*name) parameters;
  WARPLENS_PYTHON_FUNCTIONS(WARPLENS_MEMBER)
#undef WARPLENS_MEMBER
  void *(
      *unchecked_thread)();  // PyThreadState_GetUnchecked: null where the thread is attached to no interpreter
  Size (*new_code_extra)(void (*free)(void *));  // _PyEval_RequestCodeExtraIndex
  int (*code_extra)(Object *code, Size index, void **extra);
  int (*set_code_extra)(Object *code, Size index, void *extra);
  void (*lock_mutex)(uint8_t *mutex);  // PyMutex_Lock; null before 3.13
  void (*unlock_mutex)(uint8_t *mutex);
  // _PyParkingLot_Park: waits while *address is what is expected; null before 3.13
  int (*park)(const void *address, const void *expected, size_t size, int64_t timeout_ns, void *argument,
              int detach);
  Object *none;
  Object *code_type;
  Object *function_type;
  uint32_t version;  // 0x030b: 3.11
  bool free_threaded;
};

//! Looks for an interpreter among the libraries that are loaded; null where there is none, or one that lacks a function that we need.
//! Once found it stays.
const CApi *find_capi();

//! What find_capi found; the caller knows that it did.
extern CApi g_python;

//! How many bytes an object has before its own fields; the last of them are the pointer to its type.
inline size_t head_size() {
  return g_python.free_threaded ? 32 : 16;
}
inline Object *type_of(Object *object) {
  Object *type;
  std::memcpy(&type, reinterpret_cast<const char *>(object) + head_size() - sizeof(type), sizeof(type));
  return type;
}

//! Holds a mutex of CPython where there is no GIL: a thread that waits for it blocks no other thread. For a few steps that call nothing of the
//! program.
class Locked {
 public:
  explicit Locked(uint8_t &mutex)
      : mutex_(g_python.free_threaded && g_python.lock_mutex != nullptr ? &mutex : nullptr) {
    if (mutex_ != nullptr) {
      g_python.lock_mutex(mutex_);
    }
  }
  ~Locked() {
    if (mutex_ != nullptr) {
      g_python.unlock_mutex(mutex_);
    }
  }
  Locked(const Locked &) = delete;
  Locked &operator=(const Locked &) = delete;

 private:
  uint8_t *mutex_;
};

//! A reference that is given back. Only for a thread that is attached to the interpreter.
class Held {
 public:
  explicit Held(Object *object) : object_(object) {}
  ~Held() {
    if (object_ != nullptr) {
      g_python.Py_DecRef(object_);
    }
  }
  Held(const Held &) = delete;
  Held &operator=(const Held &) = delete;
  Held &operator=(Held &&other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  explicit operator bool() const { return object_ != nullptr; }
  Object *get() const { return object_; }
  Object *release() {
    Object *mine = object_;
    object_ = nullptr;
    return mine;
  }

 private:
  Object *object_;
};

inline Object *held(Object *object) {
  if (object != nullptr) {
    g_python.Py_IncRef(object);
  }
  return object;
}

}  // namespace warplens::agent::python
