// Checks CPython's frame layout at import, and reads frames by documented calls if it differs.
#include "frame.h"

namespace warplens::binding {

bool g_frames_known = false;

namespace {

// The object lives as long as its frame, so handing it out without counting is fine while the frame runs.
Frame *borrowed(PyFrameObject *object) {
  Py_XDECREF(object);
  return reinterpret_cast<Frame *>(object);
}

PyFrameObject *as_object(Frame *frame) {
  return reinterpret_cast<PyFrameObject *>(frame);
}

bool same_code(const Frame *frame, PyFrameObject *object) {
  PyCodeObject *code = PyFrame_GetCode(object);
  const bool same = layout::code(frame) == reinterpret_cast<PyObject *>(code);
  Py_DECREF(code);
  return same;
}

// Does the chain of frames, read through the layout, hold the chain of frame objects? The import system is on the stack,
// so there are some. Between two of them CPython may have internal frames.
bool layout_holds(PyThreadState *state) {
  PyFrameObject *object = PyEval_GetFrame();
  Frame *frame = layout::current(state);
  if (object == nullptr) {
    return false;
  }
  Py_INCREF(object);
  int seen = 0;
  for (; object != nullptr && seen < 4; ++seen) {
    int strange = 0;
    while (frame != nullptr && !same_code(frame, object) && strange++ < 3) {
      frame = reinterpret_cast<const layout::Head *>(frame)->previous;
    }
    if (frame == nullptr || strange > 3 || (seen == 0 && strange > 0)) {
      Py_DECREF(object);
      return false;
    }
    frame = reinterpret_cast<const layout::Head *>(frame)->previous;
    PyFrameObject *outer = PyFrame_GetBack(object);
    Py_DECREF(object);
    object = outer;
  }
  Py_XDECREF(object);
  return seen > 1;
}

}  // namespace

bool init_frames() {
  g_frames_known = layout_holds(thread_state());
  PyErr_Clear();
  return true;
}

Frame *slow_current_frame() {
  return reinterpret_cast<Frame *>(PyEval_GetFrame());
}

Frame *slow_caller_of(Frame *frame) {
  return borrowed(PyFrame_GetBack(as_object(frame)));
}

PyObject *slow_code_of(Frame *frame) {
  PyCodeObject *code = PyFrame_GetCode(as_object(frame));
  Py_DECREF(code);
  return reinterpret_cast<PyObject *>(code);
}

}  // namespace warplens::binding
