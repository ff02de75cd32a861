// The types int64, uint64, int32, uint32, float64 and float32.
#include "scalars.h"

#include <cmath>
#include <limits>

namespace warplens::binding {

namespace {

extern PyTypeObject g_types[6];
enum Which { kInt64, kUint64, kInt32, kUint32, kFloat64, kFloat32 };

constexpr const char *kNames[] = {"int64", "uint64", "int32", "uint32", "float64", "float32"};
constexpr int32_t kTypes[] = {NVTX_PAYLOAD_TYPE_INT64,  NVTX_PAYLOAD_TYPE_UNSIGNED_INT64,
                              NVTX_PAYLOAD_TYPE_INT32,  NVTX_PAYLOAD_TYPE_UNSIGNED_INT32,
                              NVTX_PAYLOAD_TYPE_DOUBLE, NVTX_PAYLOAD_TYPE_FLOAT};

bool fits(PyObject *number, int which) {
  if (which == kUint64 || which == kUint32) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(number);
    return !PyErr_Occurred() && (which == kUint64 || value <= std::numeric_limits<uint32_t>::max());
  }
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  return overflow == 0 && (which == kInt64 || (value >= std::numeric_limits<int32_t>::min() &&
                                               value <= std::numeric_limits<int32_t>::max()));
}

// A plain int or float of the argument; null with TypeError or OverflowError.
PyObject *plain(PyObject *value, int which) {
  if (which >= kFloat64) {
    PyObject *number = PyNumber_Float(value);
    if (number != nullptr && which == kFloat32) {
      const double wide = PyFloat_AS_DOUBLE(number);
      if (std::isfinite(wide) && std::isinf(static_cast<float>(wide))) {
        Py_DECREF(number);
        PyErr_SetString(PyExc_OverflowError, "the number is too large for float32");
        return nullptr;
      }
    }
    return number;
  }
  PyObject *number = PyNumber_Index(value);
  if (number != nullptr && !fits(number, which)) {
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "%S does not fit in %s", number, kNames[which]);
    Py_CLEAR(number);
  }
  return number;
}

PyObject *scalar_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *value = nullptr;
  static const char *names[] = {"value", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O", const_cast<char **>(names), &value)) {
    return nullptr;
  }
  const int which = static_cast<int>(type - g_types);
  PyObject *number = plain(value, which);
  if (number == nullptr) {
    return nullptr;
  }
  PyObject *one = PyTuple_Pack(1, number);
  Py_DECREF(number);
  if (one == nullptr) {
    return nullptr;
  }
  PyObject *made = type->tp_base->tp_new(type, one, nullptr);
  Py_DECREF(one);
  return made;
}

PyObject *scalar_repr(PyObject *self) {
  const int which = static_cast<int>(Py_TYPE(self) - g_types);
  PyObject *text = (which >= kFloat64 ? PyFloat_Type : PyLong_Type).tp_repr(self);
  if (text == nullptr) {
    return nullptr;
  }
  PyObject *whole = PyUnicode_FromFormat("%s(%U)", kNames[which], text);
  Py_DECREF(text);
  return whole;
}

PyObject *scalar_str(PyObject *self) {
  const int which = static_cast<int>(Py_TYPE(self) - g_types);
  return (which >= kFloat64 ? PyFloat_Type : PyLong_Type).tp_repr(self);
}

#define WARPLENS_SCALAR(name, what)                                                 \
  {                                                                                 \
      .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx." name, \
      .tp_repr = scalar_repr,                                                       \
      .tp_str = scalar_str,                                                         \
      .tp_flags = Py_TPFLAGS_DEFAULT,                                               \
      .tp_doc = name "(value)\n--\n\n" what                                         \
                     " as a payload; raises OverflowError if the value "            \
                     "does not fit.",                                               \
      .tp_new = scalar_new,                                                         \
  }

PyTypeObject g_types[6] = {
    WARPLENS_SCALAR("int64", "A signed 64-bit integer"),
    WARPLENS_SCALAR("uint64", "An unsigned 64-bit integer"),
    WARPLENS_SCALAR("int32", "A signed 32-bit integer"),
    WARPLENS_SCALAR("uint32", "An unsigned 32-bit integer"),
    WARPLENS_SCALAR("float64", "A double"),
    WARPLENS_SCALAR("float32", "A float of 32 bits"),
};

}  // namespace

bool add_scalar_types(PyObject *module) {
  for (int i = 0; i < 6; ++i) {
    g_types[i].tp_base = i >= kFloat64 ? &PyFloat_Type : &PyLong_Type;
    if (PyType_Ready(&g_types[i]) < 0 ||
        PyModule_AddObjectRef(module, kNames[i], reinterpret_cast<PyObject *>(&g_types[i])) < 0) {
      return false;
    }
  }
  return true;
}

bool typed_scalar(PyObject *payload, Reading *out) {
  const PyTypeObject *type = Py_TYPE(payload);
  if (type < g_types || type >= g_types + 6) {
    return false;
  }
  const int which = static_cast<int>(type - g_types);
  out->type = kTypes[which];
  if (which == kFloat64) {
    out->number.dValue = PyFloat_AS_DOUBLE(payload);
  } else if (which == kFloat32) {
    out->number.fValue = static_cast<float>(PyFloat_AS_DOUBLE(payload));
  } else {
    // The low bits are the same, whatever the sign.
    out->number.ullValue = PyLong_AsUnsignedLongLongMask(payload);
    if (which == kInt32 || which == kUint32) {
      out->number.ullValue &= 0xffffffffu;
    }
  }
  return true;
}

}  // namespace warplens::binding
