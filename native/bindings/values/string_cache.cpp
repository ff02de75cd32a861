// UTF-8 of Python strings, with a cache of the handles that a domain registered.
#include "string_cache.h"

#include <cstring>

#include "bindings/domain.h"

namespace warplens::binding {

#if !defined(Py_GIL_DISABLED)
StringSlot g_string_slots[kStringSlots];

namespace {

void remember(Domain *domain, PyObject *text, nvtxStringHandle_t handle) {
  StringSlot &slot = string_slot(domain, text);
  PyObject *old = slot.text;
  slot = {Py_NewRef(text), domain, handle};
  Py_XDECREF(old);
}

}  // namespace
#endif

PyObject *escaped(PyObject *text) {
  PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
  if (bytes == nullptr) {
    PyErr_Clear();
    return PyBytes_FromString("?");
  }
  const char *at = PyBytes_AS_STRING(bytes);
  const Py_ssize_t size = PyBytes_GET_SIZE(bytes);
  Py_ssize_t nuls = 0;
  for (Py_ssize_t i = 0; i < size; ++i) {
    nuls += at[i] == '\0';
  }
  if (nuls == 0) {
    return bytes;
  }
  PyObject *wide = PyBytes_FromStringAndSize(nullptr, size + 3 * nuls);
  if (wide != nullptr) {
    char *out = PyBytes_AS_STRING(wide);
    for (Py_ssize_t i = 0; i < size; ++i) {
      if (at[i] == '\0') {
        std::memcpy(out, "\\x00", 4);
        out += 4;
      } else {
        *out++ = at[i];
      }
    }
  }
  Py_DECREF(bytes);
  return wide;
}

const char *utf8(PyObject *text, PyObject **holder) {
  *holder = nullptr;
  Py_ssize_t size = 0;
  const char *at = PyUnicode_AsUTF8AndSize(text, &size);
  if (at != nullptr && std::strlen(at) == static_cast<size_t>(size)) {
    return at;
  }
  PyErr_Clear();
  *holder = escaped(text);
  if (*holder == nullptr) {
    PyErr_Clear();
    return "?";
  }
  return PyBytes_AS_STRING(*holder);
}

PyObject *text_argument(PyObject *o, const char *what) {
  if (PyUnicode_CheckExact(o)) {
    return Py_NewRef(o);
  }
  if (PyUnicode_Check(o)) {
    return PyUnicode_FromObject(o);
  }
  if (PyBytes_Check(o)) {
    return PyUnicode_DecodeUTF8(PyBytes_AS_STRING(o), PyBytes_GET_SIZE(o), "backslashreplace");
  }
  PyErr_Format(PyExc_TypeError, "%s must be a str or None, not %.100s%s", what, Py_TYPE(o)->tp_name,
               PyCallable_Check(o) ? " (a bare decorator needs parentheses: @annotate())" : "");
  return nullptr;
}

nvtxStringHandle_t find_registered(Domain *domain, PyObject *text) {
  nvtxStringHandle_t handle = nullptr;
  PyObject *known = find_in(domain->strings, text);
  if (known != nullptr) {
    handle = static_cast<nvtxStringHandle_t>(PyLong_AsVoidPtr(known));
    Py_DECREF(known);
  } else {
    if (PyDict_GET_SIZE(domain->strings) >= kMaxRegistered ||
        PyUnicode_GET_LENGTH(text) > kMaxRegisteredLength) {
      return nullptr;
    }
    PyObject *holder = nullptr;
    handle = nvtxDomainRegisterStringA(domain->handle, utf8(text, &holder));
    Py_XDECREF(holder);
    PyObject *number = PyLong_FromVoidPtr(handle);
    if (number == nullptr || PyDict_SetItem(domain->strings, text, number) < 0) {
      PyErr_Clear();
    }
    Py_XDECREF(number);
  }
#if !defined(Py_GIL_DISABLED)
  remember(domain, text, handle);
#endif
  return handle;
}

void forget_registered(Domain *domain) {
  PyDict_Clear(domain->strings);
#if !defined(Py_GIL_DISABLED)
  for (StringSlot &slot : g_string_slots) {
    if (slot.domain == domain) {
      PyObject *old = slot.text;
      slot = {};
      Py_XDECREF(old);
    }
  }
#endif
}

}  // namespace warplens::binding
