#include "color.h"

namespace warplens::binding {

namespace {

constexpr Py_ssize_t kMaxKnown = 4096;
PyObject *g_known = nullptr;  // str -> int

PyObject *ask_python(PyObject *color) {
  PyObject *module = PyImport_ImportModule("warplens.nvtx.colors");
  if (module == nullptr) {
    return nullptr;
  }
  PyObject *number = PyObject_CallMethod(module, "color_to_hex", "O", color);
  Py_DECREF(module);
  return number;
}

}  // namespace

uint32_t find_color(PyObject *color, bool *bad) {
  if (PyLong_Check(color)) {
    return static_cast<uint32_t>(PyLong_AsUnsignedLongMask(color));
  }
  const bool named = PyUnicode_CheckExact(color);
  if (named && g_known != nullptr) {
    PyObject *known = PyDict_GetItemWithError(g_known, color);
    if (known != nullptr) {
      return static_cast<uint32_t>(PyLong_AsUnsignedLongMask(known));
    }
    PyErr_Clear();
  }
  PyObject *number = ask_python(color);
  if (number == nullptr) {
    *bad = true;
    return kBlue;
  }
  const uint32_t argb = static_cast<uint32_t>(PyLong_AsUnsignedLongMask(number));
  if (named) {
    if (g_known == nullptr) {
      g_known = PyDict_New();
    }
    if (g_known == nullptr ||
        (PyDict_GET_SIZE(g_known) < kMaxKnown && PyDict_SetItem(g_known, color, number) < 0)) {
      PyErr_Clear();
    }
  }
  Py_DECREF(number);
  return argb;
}

}  // namespace warplens::binding
