// Payloads of named values: dicts by their own schema, or as JSON; and texts.
#include <cstring>

#include "bindings/values/string_cache.h"
#include "payload.h"

namespace warplens::binding {

namespace {

uint64_t mixed(uint64_t hash, uint64_t more) {
  hash = (hash ^ more) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

struct Entries {
  Entries() = default;
  ~Entries() {
    for (int i = 0; i < count; ++i) {
      Py_DECREF(keys[i]);
      Py_DECREF(values[i]);
    }
  }
  Entries(const Entries &) = delete;
  Entries &operator=(const Entries &) = delete;

  PyObject *keys[kMaxDictKeys];
  PyObject *values[kMaxDictKeys];
  Kind kinds[kMaxDictKeys];
  int count = 0;
  uint64_t hash = 0;
};

// False where a schema cannot say it.
bool list_entries(PyObject *dict, Entries *out) {
  PyObject *key = nullptr;
  PyObject *value = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(dict, &at, &key, &value)) {
    if (out->count == kMaxDictKeys || !PyUnicode_CheckExact(key)) {
      return false;
    }
    out->keys[out->count] = Py_NewRef(key);
    out->values[out->count] = Py_NewRef(value);
    const Kind kind = kind_of_value(value);
    out->kinds[out->count++] = kind;
    if (kind == Kind::none) {
      return false;
    }
    const uint64_t name = static_cast<uint64_t>(PyObject_Hash(key));
    out->hash = mixed(out->hash, name + static_cast<uint64_t>(kind));
  }
  return out->count > 0;
}

constexpr int kMaxTexts = kMaxDictKeys;

bool write_entries(const Entries &entries, const DictLayout &schema, Reading *out) {
  const char *texts[kMaxTexts] = {};
  size_t lengths[kMaxTexts] = {};
  size_t size = schema.fixed;
  for (int i = 0; i < entries.count; ++i) {
    if (entries.kinds[i] != Kind::text) {
      continue;
    }
    if (PyUnicode_GET_LENGTH(entries.values[i]) > static_cast<Py_ssize_t>(kMostBytes)) {
      return false;
    }
    Py_ssize_t n = 0;
    texts[i] = PyUnicode_AsUTF8AndSize(entries.values[i], &n);
    // A NUL would end the text early, and a lone surrogate is no UTF-8: JSON can say both.
    if (texts[i] == nullptr || std::strlen(texts[i]) != static_cast<size_t>(n)) {
      PyErr_Clear();
      return false;
    }
    lengths[i] = static_cast<size_t>(n) + 1;
    size += lengths[i];
  }
  char *at = out->room(size);
  if (at == nullptr) {
    return true;
  }
  std::memset(at, 0, schema.fixed);
  char *text = at + schema.fixed;
  for (int i = 0; i < entries.count; ++i) {
    if (entries.kinds[i] == Kind::text) {
      std::memcpy(text, texts[i], lengths[i]);
      text += lengths[i];
    } else {
      write_value(entries.values[i], entries.kinds[i], at + schema.offsets[i]);
    }
  }
  out->add(schema.schema, at, size);
  return true;
}

bool read_by_schema(Domain *domain, int32_t state, PyObject *dict, Reading *out) {
  Entries entries;
  if (!list_entries(dict, &entries)) {
    return false;
  }
  DictLayout layout;
  return dict_layout(domain, state, entries.keys, entries.kinds, entries.count, entries.hash, &layout) &&
         write_entries(entries, layout, out);
}

}  // namespace

Kind kind_of_value(PyObject *value) {
  if (PyFloat_CheckExact(value)) {
    return Kind::float64;
  }
  if (PyBool_Check(value)) {
    return Kind::boolean;
  }
  if (PyLong_CheckExact(value)) {
    int overflow = 0;
    PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0) {
      return Kind::int64;
    }
    if (overflow > 0) {
      PyLong_AsUnsignedLongLong(value);
      if (!PyErr_Occurred()) {
        return Kind::uint64;
      }
      PyErr_Clear();
    }
    return Kind::none;
  }
  if (PyUnicode_Check(value)) {
    return Kind::text;
  }
  if (PyComplex_CheckExact(value)) {
    return Kind::complex128;
  }
  Reading number;
  if (!constant_payload(value, &number) &&
      !(PyObject_CheckBuffer(value) && number_of_buffer(value, &number))) {
    return Kind::none;
  }
  switch (number.type) {
    case NVTX_PAYLOAD_TYPE_INT64:
      return Kind::int64;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      return Kind::uint64;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      return Kind::float64;
    case NVTX_PAYLOAD_TYPE_FLOAT:
      return Kind::float32;
    case NVTX_PAYLOAD_TYPE_INT32:
      return Kind::int32;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      return Kind::uint32;
    default:
      return Kind::none;
  }
}

void write_value(PyObject *value, Kind kind, char *out) {
  if (kind == Kind::boolean) {
    *out = value == Py_True;
    return;
  }
  if (kind == Kind::complex128) {
    const double parts[2] = {PyComplex_RealAsDouble(value), PyComplex_ImagAsDouble(value)};
    std::memcpy(out, parts, sizeof parts);
    swallow_error();
    return;
  }
  if (kind == Kind::float64) {
    const double number = PyFloat_AsDouble(value);
    std::memcpy(out, &number, 8);
    swallow_error();
    return;
  }
  if (PyLong_CheckExact(value)) {
    const unsigned long long number = PyLong_AsUnsignedLongLongMask(value);
    std::memcpy(out, &number, size_of(kind));
    return;
  }
  Reading number;
  if (!constant_payload(value, &number)) {
    number_of_buffer(value, &number);
  }
  std::memcpy(out, &number.number, size_of(kind));
}

void read_text(Domain *domain, int32_t state, PyObject *text, Builtin schema, Reading *out) {
  constexpr Py_ssize_t most = static_cast<Py_ssize_t>(kMostBytes) + 1;
  if (PyUnicode_GET_LENGTH(text) > most) {
    text = PyUnicode_Substring(text, 0, most);
    if (text == nullptr) {
      swallow_error();
      return;
    }
    out->hold(text);
  }
  PyObject *holder = nullptr;
  const char *at = utf8(text, &holder);
  if (holder != nullptr) {
    out->hold(holder);
  }
  out->add(builtin_schema(domain, state, schema), at, std::strlen(at) + 1);
}

namespace {

// Counts what a payload holds down to nothing left of `budget`: then it makes more JSON than anybody keeps. Runs no Python.
bool too_large(PyObject *value, Py_ssize_t *budget, int depth) {
  constexpr int kDeepest = 200;  // JSON goes on from there, and says so itself
  if (PyUnicode_Check(value)) {
    *budget -= PyUnicode_GET_LENGTH(value) / 2;
  } else if (PyBytes_Check(value)) {
    *budget -= PyBytes_GET_SIZE(value) / 2;
  } else if (PyByteArray_Check(value)) {
    *budget -= PyByteArray_GET_SIZE(value) / 2;
  } else if (PyAnySet_Check(value)) {
    *budget -= PySet_GET_SIZE(value);
  } else if (PyRange_Check(value)) {
    const Py_ssize_t n = PyObject_Size(value);
    PyErr_Clear();
    *budget = n < 0 ? -1 : *budget - n;
  } else if (depth < kDeepest && (PyList_Check(value) || PyTuple_Check(value))) {
    for (Py_ssize_t i = 0; *budget >= 0 && i < PySequence_Fast_GET_SIZE(value); ++i) {
      too_large(PySequence_Fast_GET_ITEM(value, i), budget, depth + 1);
    }
  } else if (depth < kDeepest && PyDict_Check(value)) {
    PyObject *key = nullptr;
    PyObject *item = nullptr;
    for (Py_ssize_t at = 0; *budget >= 0 && PyDict_Next(value, &at, &key, &item);) {
      too_large(key, budget, depth + 1);
      too_large(item, budget, depth + 1);
    }
  }
  return --*budget < 0;
}

}  // namespace

bool read_json(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  Py_ssize_t budget = kMostBytes / 2;  // each thing has at least a sign and a comma
#if defined(Py_GIL_DISABLED)
  budget = 0;
  const bool large = true;  // other threads may change it meanwhile
#else
  const bool large = too_large(payload, &budget, 0);
#endif
  PyObject *part = large ? ask_layouts("beginning_of", payload) : Py_NewRef(payload);
  PyObject *json = part != nullptr ? ask_layouts("to_json", part) : nullptr;
  Py_XDECREF(part);
  if (json == nullptr || !PyUnicode_Check(json)) {
    Py_XDECREF(json);
    return false;
  }
  PyObject *bytes = escaped(json);
  Py_DECREF(json);
  if (bytes == nullptr) {
    swallow_error();
    return true;
  }
  out->hold(bytes);
  out->add(builtin_schema(domain, state, Builtin::json), PyBytes_AS_STRING(bytes),
           static_cast<size_t>(PyBytes_GET_SIZE(bytes)) + 1);
  return true;
}

bool read_dict(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  bool done = false;
  if (PyDict_CheckExact(payload)) {
    WARPLENS_LOCK(payload);
    done = read_by_schema(domain, state, payload, out);
    WARPLENS_UNLOCK();
  }
  if (!done && !read_json(domain, state, payload, out)) {
    warn_once("a payload of type %.100s cannot be written as JSON; the event is recorded without it",
              payload);
  }
  return true;
}

}  // namespace warplens::binding
