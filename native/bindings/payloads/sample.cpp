// Packs numbers, tuples, dicts and arrays into the bytes of a counter's samples.
#include "sample.h"

#include <cstring>
#include <limits>

namespace warplens::binding {

namespace {

template <typename T>
bool store_signed(long long value, char *at) {
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) {
    return false;
  }
  const T narrow = static_cast<T>(value);
  std::memcpy(at, &narrow, sizeof narrow);
  return true;
}

template <typename T>
bool store_unsigned(unsigned long long value, char *at) {
  if (value > std::numeric_limits<T>::max()) {
    return false;
  }
  const T narrow = static_cast<T>(value);
  std::memcpy(at, &narrow, sizeof narrow);
  return true;
}

bool store_integer(PyObject *number, Kind kind, char *at) {
  if (kind == Kind::uint64 || kind == Kind::uint32 || kind == Kind::uint16 || kind == Kind::uint8) {
    const unsigned long long value = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) {
      return false;
    }
    return kind == Kind::uint64   ? store_unsigned<uint64_t>(value, at)
           : kind == Kind::uint32 ? store_unsigned<uint32_t>(value, at)
           : kind == Kind::uint16 ? store_unsigned<uint16_t>(value, at)
                                  : store_unsigned<uint8_t>(value, at);
  }
  const long long value = PyLong_AsLongLong(number);
  if (value == -1 && PyErr_Occurred()) {
    return false;
  }
  return kind == Kind::int64   ? store_signed<int64_t>(value, at)
         : kind == Kind::int32 ? store_signed<int32_t>(value, at)
         : kind == Kind::int16 ? store_signed<int16_t>(value, at)
                               : store_signed<int8_t>(value, at);
}

// Any number into any kind; false, perhaps with an exception, where it does not fit.
bool store(PyObject *value, Kind kind, char *at) {
  if (kind == Kind::float64 || kind == Kind::float32 || kind == Kind::float16) {
    const double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
      return false;
    }
    if (kind == Kind::float64) {
      std::memcpy(at, &number, 8);
    } else if (kind == Kind::float32) {
      const float narrow = static_cast<float>(number);
      std::memcpy(at, &narrow, 4);
    } else {
#if PY_VERSION_HEX >= 0x030B0000
      return PyFloat_Pack2(number, at, PY_LITTLE_ENDIAN) == 0;
#else
      return _PyFloat_Pack2(number, reinterpret_cast<unsigned char *>(at), PY_LITTLE_ENDIAN) == 0;
#endif
    }
    return true;
  }
  if (kind == Kind::boolean) {
    const int truth = PyObject_IsTrue(value);
    *at = truth > 0;
    return truth >= 0;
  }
  if (PyLong_Check(value)) {
    return store_integer(value, kind, at);
  }
  PyObject *number = PyNumber_Index(value);
  const bool done = number != nullptr && store_integer(number, kind, at);
  Py_XDECREF(number);
  return done;
}

bool store_items(const Sample &sample, PyObject *const *items, char *at) {
  for (int i = 0; i < sample.count; ++i) {
    if (!store(items[i], sample.fields[i].kind, at + sample.fields[i].offset)) {
      return false;
    }
  }
  return true;
}

bool store_dict(const Sample &sample, PyObject *dict, char *at) {
  for (int i = 0; i < sample.count; ++i) {
    PyObject *value = Py_XNewRef(PyDict_GetItemWithError(dict, sample.fields[i].name));
    const bool done = value != nullptr && store(value, sample.fields[i].kind, at + sample.fields[i].offset);
    Py_XDECREF(value);
    if (!done) {
      return false;
    }
  }
  return PyDict_GET_SIZE(dict) == sample.count;
}

// One sample of plain Python values; false where that cannot be done, perhaps with an exception.
bool store_sample(const Sample &sample, PyObject *value, char *at) {
  if (sample.count == 0) {
    return false;
  }
  if (PyUnicode_GET_LENGTH(sample.fields[0].name) == 0) {
    return store(value, sample.fields[0].kind, at);
  }
  if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == sample.count) {
    return store_items(sample, reinterpret_cast<PyTupleObject *>(value)->ob_item, at);
  }
  if (PyDict_Check(value)) {
    return store_dict(sample, value, at);
  }
  return false;
}

// What only NumPy can write, or what is NumPy's already.
bool ask_numpy(const Sample &sample, PyObject *value, Packed *out) {
  PyObject *module = PyImport_ImportModule("warplens.nvtx._counters");
  PyObject *pack = module != nullptr ? attribute(module, "pack") : nullptr;
  PyObject *bytes =
      pack != nullptr ? PyObject_CallFunctionObjArgs(pack, value, sample.dtype, nullptr) : nullptr;
  Py_XDECREF(pack);
  Py_XDECREF(module);
  if (bytes == nullptr || !PyBytes_Check(bytes) || PyBytes_GET_SIZE(bytes) % sample.size != 0) {
    swallow_error();
    Py_XDECREF(bytes);
    return false;
  }
  out->hold(bytes);
  out->data = PyBytes_AS_STRING(bytes);
  out->size = static_cast<size_t>(PyBytes_GET_SIZE(bytes));
  return true;
}

// An array of exactly the counter's samples: as it lies in memory.
bool borrow_array(const Sample &sample, PyObject *values, Packed *out) {
  if (!PyObject_CheckBuffer(values)) {
    return false;
  }
  PyObject *dtype = sample.dtype != nullptr ? attribute(values, "dtype") : nullptr;
  swallow_error();
  const bool same = dtype == nullptr || dtype == sample.dtype;
  Py_XDECREF(dtype);
  if (!same && sample.count != 1) {
    return false;
  }
  if (!out->borrow(values, PyBUF_FULL_RO) || !PyBuffer_IsContiguous(&out->view(), 'C') ||
      out->view().itemsize != sample.size) {
    return false;
  }
  if (sample.count == 1 && PyUnicode_GET_LENGTH(sample.fields[0].name) == 0 &&
      kind_of_format(out->view().format, out->view().itemsize) != sample.fields[0].kind) {
    return false;
  }
  out->data = out->view().buf;
  out->size = static_cast<size_t>(out->view().len);
  return true;
}

bool store_each(const Sample &sample, PyObject *values, Packed *out) {
  constexpr Py_ssize_t kMost = Py_ssize_t{1} << 28;  // range(2**70) would fill all memory
  const Py_ssize_t told = PyObject_LengthHint(values, 0);
  PyObject *items = told >= 0 && told <= kMost ? PySequence_Tuple(values) : nullptr;
  if (items == nullptr) {
    swallow_error();
    return false;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(items);
  char *at = out->room(static_cast<size_t>(n * sample.size) + 1);
  bool done = at != nullptr;
  if (done) {
    std::memset(at, 0, static_cast<size_t>(n * sample.size));
  }
  for (Py_ssize_t i = 0; done && i < n; ++i) {
    done = store_sample(sample, PyTuple_GET_ITEM(items, i), at + i * sample.size);
  }
  swallow_error();
  out->data = at;
  out->size = static_cast<size_t>(n * sample.size);
  if (!done) {
    done = ask_numpy(sample, items, out) || (PyObject_CheckBuffer(values) && ask_numpy(sample, values, out));
  }
  Py_DECREF(items);
  return done;
}

}  // namespace

Sample::~Sample() {
  PyMem_RawFree(fields);
}

bool read_sample(PyObject *spec, PyObject *dtype, Sample *out) {
  PyObject *fields = PyTuple_GET_ITEM(spec, 3);
  out->size = PyLong_AsSsize_t(PyTuple_GET_ITEM(spec, 2));
  out->count = static_cast<int>(PyTuple_GET_SIZE(fields));
  out->dtype = dtype;
  if (out->count > 0) {
    out->fields =
        static_cast<Sample::Field *>(PyMem_RawCalloc(static_cast<size_t>(out->count), sizeof(Sample::Field)));
    if (out->fields == nullptr) {
      PyErr_NoMemory();
      return false;
    }
  }
  for (int i = 0; i < out->count; ++i) {
    PyObject *field = PyTuple_GET_ITEM(fields, i);
    out->fields[i] = {PyTuple_GET_ITEM(field, 0),
                      static_cast<Kind>(PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(field, 1))),
                      static_cast<uint32_t>(PyLong_AsUnsignedLongMask(PyTuple_GET_ITEM(field, 2)))};
  }
  return !PyErr_Occurred();
}

Packed::~Packed() {
  if (view_.obj != nullptr) {
    PyBuffer_Release(&view_);
  }
  PyMem_RawFree(heap_);
  Py_XDECREF(holder_);
}

char *Packed::room(size_t bytes) {
  if (bytes <= sizeof inline_) {
    return inline_;
  }
  heap_ = PyMem_RawMalloc(bytes);
  return static_cast<char *>(heap_);
}

bool Packed::borrow(PyObject *buffer, int flags) {
  if (PyObject_GetBuffer(buffer, &view_, flags) < 0) {
    swallow_error();
    view_.obj = nullptr;
    return false;
  }
  return true;
}

bool pack_sample(const Sample &sample, PyObject *value, Packed *out) {
  if (sample.count > 0) {
    char *at = out->room(static_cast<size_t>(sample.size));
    if (at != nullptr) {
      std::memset(at, 0, static_cast<size_t>(sample.size));
      if (store_sample(sample, value, at)) [[likely]] {
        out->data = at;
        out->size = static_cast<size_t>(sample.size);
        return true;
      }
      swallow_error();
    }
  }
  return ask_numpy(sample, value, out) && out->size == static_cast<size_t>(sample.size);
}

bool pack_samples(const Sample &sample, PyObject *values, Packed *out) {
  return borrow_array(sample, values, out) || store_each(sample, values, out);
}

bool pack_times(PyObject *times, Packed *out) {
  Sample sample;
  sample.size = 8;
  sample.count = 1;
  static Lazy empty;
  PyObject *nameless = empty.get([] { return PyUnicode_InternFromString(""); });
  Sample::Field field = {nameless, Kind::int64, 0};
  sample.fields = &field;
  const bool done = borrow_array(sample, times, out) || store_each(sample, times, out);
  sample.fields = nullptr;
  return done;
}

}  // namespace warplens::binding
