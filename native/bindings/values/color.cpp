// Reads colours: numbers here, names by warplens.nvtx in Python, each once.
#include "color.h"

namespace warplens::binding {

namespace {

constexpr Py_ssize_t kMaxKnown = 4096;
Lazy g_known;  // str -> int

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
  PyObject *all = named ? g_known.get(PyDict_New) : nullptr;
  if (PyObject *known = all != nullptr ? find_in(all, color) : nullptr; known != nullptr) {
    const uint32_t argb = static_cast<uint32_t>(PyLong_AsUnsignedLongMask(known));
    Py_DECREF(known);
    return argb;
  }
  PyErr_Clear();
  PyObject *number = ask_python(color);
  if (number == nullptr) {
    *bad = true;
    return kBlue;
  }
  const uint32_t argb = static_cast<uint32_t>(PyLong_AsUnsignedLongMask(number));
  if (all != nullptr && PyDict_GET_SIZE(all) < kMaxKnown && PyDict_SetItem(all, color, number) < 0) {
    PyErr_Clear();
  }
  Py_DECREF(number);
  return argb;
}

}  // namespace warplens::binding
