// Reads a payload argument: numbers directly, text, dicts, bytes, sequences and arrays by their layout.
#include "payload.h"

#include <nvtx3/nvToolsExtPayload.h>

#include <cstring>

#include "scalars.h"

namespace warplens::binding {

namespace {

constexpr Py_ssize_t kMaxWarned = 1024;

bool integer(PyObject *number, Reading *out) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) {
    out->type = NVTX_PAYLOAD_TYPE_INT64;
    out->number.llValue = value;
    return true;
  }
  if (overflow > 0) {
    const unsigned long long wide = PyLong_AsUnsignedLongLong(number);
    if (!PyErr_Occurred()) {
      out->type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
      out->number.ullValue = wide;
      return true;
    }
    PyErr_Clear();
  }
  warn_once("an int payload does not fit in 64 bits; the event is recorded without it (%.100s)", number);
  return true;
}

// A number that is no int or float but behaves like one (Fraction, Decimal, a class with __index__). Things with a
// length are arrays.
PyObject *plain_number(PyObject *payload) {
  const PyTypeObject *type = Py_TYPE(payload);
  const bool sized = (type->tp_as_sequence != nullptr && type->tp_as_sequence->sq_length != nullptr) ||
                     (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_length != nullptr);
  const PyNumberMethods *number = type->tp_as_number;
  if (sized || number == nullptr) {
    return nullptr;
  }
  PyObject *plain = nullptr;
  if (number->nb_index != nullptr) {
    plain = PyNumber_Index(payload);
  } else if (number->nb_float != nullptr) {
    plain = PyNumber_Float(payload);
  }
  swallow_error();
  return plain;
}

void read_complex(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  char *at = out->room(16);
  write_value(payload, Kind::complex128, at);
  out->add(builtin_schema(domain, state, Builtin::complex128), at, 16);
}

// With the names of its values where the tool takes enumerations, else as a number.
void read_bool(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  if (!payload_call_taken(domain, state, NVTX3EXT_CBID_nvtxPayloadSchemaRegister) ||
      builtin_schema(domain, state, Builtin::truth) == 0) {
    out->type = NVTX_PAYLOAD_TYPE_INT64;
    out->number.llValue = payload == Py_True;
    return;
  }
  char *at = out->room(1);
  *at = payload == Py_True;
  out->add(builtin_schema(domain, state, Builtin::boolean), at, 1);
}

// Objects that say what they hold: mappings, sets, dataclasses and the like.
bool read_other(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  PyObject *plain = ask_layouts("plain_object", payload);
  if (plain == nullptr) {
    return false;
  }
  const bool known = plain != Py_None;
  if (known && PyDict_Check(plain)) {
    read_dict(domain, state, plain, out);
  } else if (known) {
    read_json(domain, state, plain, out);
  }
  Py_DECREF(plain);
  return known;
}

}  // namespace

void warn_once(const char *format, PyObject *payload) {
  static Lazy sets;
  PyObject *told = sets.get([] { return PySet_New(nullptr); });
  PyObject *key = PyUnicode_FromFormat("%s %.200s", format, Py_TYPE(payload)->tp_name);
  const bool before = key == nullptr || told == nullptr || PySet_Contains(told, key) != 0;
  if (!before && PySet_GET_SIZE(told) < kMaxWarned && PySet_Add(told, key) == 0) {
    PyObject *module = PyImport_ImportModule("warplens.nvtx._warnings");
    PyObject *category = module != nullptr ? PyObject_GetAttrString(module, "NvtxWarning") : nullptr;
    if (category != nullptr) {
      PyErr_WarnFormat(category, 1, format, Py_TYPE(payload)->tp_name);
    }
    Py_XDECREF(category);
    Py_XDECREF(module);
  }
  // Under -W error the warning is an exception; recording must not stop the program.
  swallow_error();
  Py_XDECREF(key);
}

bool constant_payload(PyObject *payload, Reading *out) {
  if (PyBool_Check(payload)) {
    return false;
  }
  if (typed_scalar(payload, out)) {
    return true;
  }
  if (PyLong_Check(payload)) {
    return integer(payload, out);
  }
  if (PyFloat_Check(payload)) {
    out->type = NVTX_PAYLOAD_TYPE_DOUBLE;
    out->number.dValue = PyFloat_AS_DOUBLE(payload);
    return true;
  }
  return false;
}

void read_payload(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  if (constant_payload(payload, out)) {
    return;
  }
  if (PyBool_Check(payload)) {
    return read_bool(domain, state, payload, out);
  }
  // NumPy's scalars have a buffer and no length; what has both is an array.
  const PySequenceMethods *sequence = Py_TYPE(payload)->tp_as_sequence;
  if ((sequence == nullptr || sequence->sq_length == nullptr) && PyObject_CheckBuffer(payload) &&
      number_of_buffer(payload, out)) {
    return;
  }
  if (!payload_call_taken(domain, state, NVTX3EXT_CBID_nvtxPayloadSchemaRegister)) {
    return;  // a tool that takes no more than numbers
  }
  if (PyUnicode_Check(payload)) {
    read_text(domain, state, payload, Builtin::text, out);
  } else if (PyDict_Check(payload)) {
    read_dict(domain, state, payload, out);
  } else if (PyComplex_Check(payload)) {
    read_complex(domain, state, payload, out);
  } else if (!read_bytes(domain, state, payload, out) && !read_sequence(domain, state, payload, out) &&
             !read_array(domain, state, payload, out)) {
    PyObject *plain = plain_number(payload);
    if (plain != nullptr) {
      constant_payload(plain, out);
      Py_DECREF(plain);
    } else if (!read_other(domain, state, payload, out)) {
      warn_once("payloads of type %.100s cannot be recorded; the event is recorded without it", payload);
    }
  }
}

bool payload_call_taken(Domain *domain, int32_t state, int callback) {
  const intptr_t *slots = NVTX_EXT_PAYLOAD_VERSIONED_ID(nvtxExtPayloadSlots);
  if (slots[callback + 1] == NVTX_EXTENSION_FRESH) [[unlikely]] {
    nvtxDomainIsEnabled(handle_for(domain, state));  // makes NVTX load the extension
  }
  return slots[callback + 1] != NVTX_EXTENSION_DISABLED && slots[callback + 1] != NVTX_EXTENSION_FRESH;
}

}  // namespace warplens::binding
