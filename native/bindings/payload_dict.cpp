// Payloads of named values: dicts by a schema of their own, or as JSON; and texts.
#include <cstring>

#include "payload.h"
#include "string_cache.h"

namespace warpline::binding {

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

bool write_entries(const Entries &entries, const DictSchema &schema, Reading *out) {
  const char *texts[kMaxTexts] = {};
  size_t lengths[kMaxTexts] = {};
  size_t size = schema.fixed;
  for (int i = 0; i < entries.count; ++i) {
    if (entries.kinds[i] != Kind::text) {
      continue;
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
  const DictSchema *schema =
      dict_schema(domain, state, entries.keys, entries.kinds, entries.count, entries.hash);
  return schema != nullptr && schema->schema != 0 && write_entries(entries, *schema, out);
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
  PyObject *holder = nullptr;
  const char *at = utf8(text, &holder);
  if (holder != nullptr) {
    out->hold(holder);
  }
  out->add(builtin_schema(domain, state, schema), at, std::strlen(at) + 1);
}

bool read_json(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  PyObject *json = ask_layouts("to_json", payload);
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
    WARPLINE_LOCK(payload);
    done = read_by_schema(domain, state, payload, out);
    WARPLINE_UNLOCK();
  }
  if (!done && !read_json(domain, state, payload, out)) {
    warn_once("a payload of type %.100s cannot be written as JSON; the event is recorded without it",
              payload);
  }
  return true;
}

}  // namespace warpline::binding
