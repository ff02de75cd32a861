// Reads the Python frames of a thread without making frame objects: CPython's layouts.
//
// An import-time test compares what is read here with what the documented calls say. Where they differ (another CPython, a
// debug build), the documented calls are used, which are slower.
#pragma once

#include "bindings/values/compat.h"
#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif

#include <cstddef>

namespace warplens::binding {

struct Frame;  // an interpreter's frame, or a frame object where the layout is unknown; never made here

extern bool g_frames_known;
bool init_frames();
Frame *slow_current_frame();
Frame *slow_caller_of(Frame *frame);
PyObject *slow_code_of(Frame *frame);

inline PyThreadState *thread_state() {
#if PY_VERSION_HEX >= 0x030D0000
  return PyThreadState_GetUnchecked();
#else
  return _PyThreadState_UncheckedGet();
#endif
}

namespace layout {

#if PY_VERSION_HEX >= 0x030C0000
struct Head {
  uintptr_t code;  // 3.14 tags the low bits
  Frame *previous;
};
#elif PY_VERSION_HEX >= 0x030B0000
struct Head {
  void *function;
  void *globals;
  void *builtins;
  void *locals;
  uintptr_t code;
  void *object;
  Frame *previous;
};
#else
struct Head {
  PyObject ob_base_and_size[1];
  Py_ssize_t size;
  Frame *previous;
  uintptr_t code;
};
static_assert(offsetof(Head, previous) == offsetof(PyFrameObject, f_back));
static_assert(offsetof(Head, code) == offsetof(PyFrameObject, f_code));
#endif

inline Frame *current(PyThreadState *state) {
#if PY_VERSION_HEX >= 0x030D0000
  return reinterpret_cast<Frame *>(state->current_frame);
#elif PY_VERSION_HEX >= 0x030B0000
  return reinterpret_cast<Frame *>(state->cframe->current_frame);
#else
  return reinterpret_cast<Frame *>(state->frame);
#endif
}

inline PyObject *code(const Frame *frame) {
  return reinterpret_cast<PyObject *>(reinterpret_cast<const Head *>(frame)->code & ~uintptr_t{3});
}

}  // namespace layout

// The innermost frame of the thread: the caller, for a function of this module. Null where no Python code runs.
inline Frame *current_frame(PyThreadState *state) {
  return g_frames_known ? layout::current(state) : slow_current_frame();
}

inline Frame *caller_of(Frame *frame) {
  return g_frames_known ? reinterpret_cast<layout::Head *>(frame)->previous : slow_caller_of(frame);
}

// Borrowed; null for a frame that is no Python code (CPython puts such between C and Python).
inline PyCodeObject *code_of(Frame *frame) {
  PyObject *code = g_frames_known ? layout::code(frame) : slow_code_of(frame);
  return code != nullptr && PyCode_Check(code) ? reinterpret_cast<PyCodeObject *>(code) : nullptr;
}

// Code objects whose run can be interrupted, to go on later.
inline constexpr int kGenerator = CO_GENERATOR | CO_ASYNC_GENERATOR;
inline constexpr int kCoroutine = CO_COROUTINE | CO_ITERABLE_COROUTINE;
inline constexpr int kSuspends = kGenerator | kCoroutine;

}  // namespace warplens::binding
