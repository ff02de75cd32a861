// Payloads that are arrays: bytes, everything with the buffer protocol (NumPy arrays among it), lists, tuples, ranges.
#include <cstring>

#include "bindings/ranges/tasks.h"
#include "bindings/values/string_cache.h"
#include "payload.h"

namespace warplens::binding {

namespace {

constexpr Py_ssize_t kMaxRange = 131072;  // longer ranges are sent as start, stop and step

bool is_number(Kind kind) {
  return kind >= Kind::int8 && kind <= Kind::float64;
}

// One number that NVTX's attributes can carry; narrower ones are widened.
void put_number(Kind kind, const char *at, Reading *out) {
  switch (kind) {
    case Kind::int8:
      out->type = NVTX_PAYLOAD_TYPE_INT32;
      out->number.iValue = *reinterpret_cast<const int8_t *>(at);
      break;
    case Kind::uint8:
      out->type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
      out->number.uiValue = *reinterpret_cast<const uint8_t *>(at);
      break;
    case Kind::int16: {
      int16_t v;
      std::memcpy(&v, at, sizeof v);
      out->type = NVTX_PAYLOAD_TYPE_INT32;
      out->number.iValue = v;
      break;
    }
    case Kind::uint16: {
      uint16_t v;
      std::memcpy(&v, at, sizeof v);
      out->type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
      out->number.uiValue = v;
      break;
    }
    case Kind::int32:
      out->type = NVTX_PAYLOAD_TYPE_INT32;
      std::memcpy(&out->number, at, 4);
      break;
    case Kind::uint32:
      out->type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
      std::memcpy(&out->number, at, 4);
      break;
    case Kind::int64:
      out->type = NVTX_PAYLOAD_TYPE_INT64;
      std::memcpy(&out->number, at, 8);
      break;
    case Kind::uint64:
      out->type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
      std::memcpy(&out->number, at, 8);
      break;
    case Kind::float16:
      out->type = NVTX_PAYLOAD_TYPE_FLOAT;
#if PY_VERSION_HEX >= 0x030B0000
      out->number.fValue = static_cast<float>(PyFloat_Unpack2(at, PY_LITTLE_ENDIAN));
#else
      out->number.fValue =
          static_cast<float>(_PyFloat_Unpack2(reinterpret_cast<const unsigned char *>(at), PY_LITTLE_ENDIAN));
#endif
      break;
    case Kind::float32:
      out->type = NVTX_PAYLOAD_TYPE_FLOAT;
      std::memcpy(&out->number, at, 4);
      break;
    case Kind::float64:
      out->type = NVTX_PAYLOAD_TYPE_DOUBLE;
      std::memcpy(&out->number, at, 8);
      break;
    default:
      break;
  }
}

// Lengths, one per dimension, then the values; null without memory.
char *array_room(Reading *out, const Py_ssize_t *shape, int dimensions, size_t bytes) {
  char *at = out->room(static_cast<size_t>(dimensions) * 8 + bytes);
  for (int i = 0; at != nullptr && i < dimensions; ++i) {
    const uint64_t length = static_cast<uint64_t>(shape[i]);
    std::memcpy(at + 8 * i, &length, 8);
  }
  return at;
}

void add_array(uint64_t schema, const char *at, int dimensions, size_t bytes, Reading *out) {
  out->add(schema, at, static_cast<size_t>(dimensions) * 8 + bytes);
}

// How many of `n` items of `size` bytes are read: all, or as many as make more than kMostBytes.
Py_ssize_t items_read(Py_ssize_t n, size_t size) {
  const Py_ssize_t most = static_cast<Py_ssize_t>(kMostBytes / size) + 1;
  return n < most ? n : most;
}

// The length that goes into a payload of which `there` of `n` items are read. Our agent sees by the bytes that it is cut;
// another tool may believe the length.
Py_ssize_t length_told(Py_ssize_t n, Py_ssize_t there) {
  return g_tasks.load(std::memory_order_acquire) != nullptr ? n : there;
}

// The first block of an array that holds more than kMostBytes, as an array of the same rank: the same beginning in C order.
// Its items may be larger than that on their own.
void shorten(Py_buffer *view, Py_ssize_t *shape) {
  Py_ssize_t length = view->len;
  for (int i = 0; i < view->ndim; ++i) {
    shape[i] = view->shape[i];
  }
  for (int i = 0; i<view->ndim &&static_cast<size_t>(length)> kMostBytes; ++i) {
    const Py_ssize_t row = shape[i] > 0 ? length / shape[i] : 0;
    if (row == 0) {
      return;  // it contradicts itself
    }
    const Py_ssize_t kept = items_read(shape[i], static_cast<size_t>(row));
    length = kept * row;
    shape[i] = kept;
  }
  view->shape = shape;
  view->len = length;
}

bool copy_bytes(char *to, Py_buffer *view, size_t bytes) {
  if (bytes == 0 || PyBuffer_IsContiguous(view, 'C')) {
    std::memcpy(to, view->buf, bytes);
  } else if (bytes < static_cast<size_t>(view->len)) {  // of one huge item
    Py_ssize_t first[PyBUF_MAX_NDIM] = {};
    std::memcpy(to, view->ndim > 0 ? PyBuffer_GetPointer(view, first) : view->buf, bytes);
  } else if (PyBuffer_ToContiguous(to, view, view->len, 'C') < 0) {
    swallow_error();
    return false;
  }
  return true;
}

void copy_view(uint64_t schema, const Py_buffer *view, int dimensions, Reading *out) {
  if (dimensions == 0 && PyBuffer_IsContiguous(view, 'C')) {
    out->add(schema, view->buf, static_cast<size_t>(view->len));
    return;
  }
  Py_buffer part = *view;  // not to be released: the view is
  Py_ssize_t shortened[PyBUF_MAX_NDIM];
  const bool cut = static_cast<size_t>(view->len) > kMostBytes;
  if (cut && view->shape != nullptr && view->ndim > 0 && view->ndim <= PyBUF_MAX_NDIM) {
    shorten(&part, shortened);
  }
  const size_t whole = static_cast<size_t>(part.len);
  const size_t bytes = whole > 2 * kMostBytes ? kMostBytes + 1 : whole;
  Py_ssize_t told[PyBUF_MAX_NDIM];
  if (view->shape != nullptr && dimensions == view->ndim) {
    for (int i = 0; i < dimensions; ++i) {
      told[i] = length_told(view->shape[i], part.shape[i]);
    }
  } else {
    const Py_ssize_t size = view->itemsize > 0 ? view->itemsize : 1;
    told[0] = view->itemsize > 0 ? length_told(view->len / size, static_cast<Py_ssize_t>(bytes) / size) : 0;
  }
  char *at = array_room(out, told, dimensions, bytes);
  if (at != nullptr && copy_bytes(at + 8 * dimensions, &part, bytes)) {
    add_array(schema, at, dimensions, bytes, out);
  }
}

int rank_of(const Py_buffer *view) {
  return view->ndim > kMaxDimensions ? 1 : view->ndim;
}

// The dtype of a NumPy array or scalar, or of what looks like one; null where there is none.
PyObject *dtype_of(PyObject *payload) {
  static Lazy text;  // asked at each event
  PyObject *name = text.get([] { return PyUnicode_InternFromString("dtype"); });
  PyObject *dtype = name != nullptr ? PyObject_GetAttr(payload, name) : nullptr;
  swallow_error();
  return dtype;
}

// Not the dtypes of other libraries. The type is remembered: it is asked at each event.
bool is_numpy(PyObject *dtype) {
  static std::atomic<PyTypeObject *> last{nullptr};
  if (Py_TYPE(dtype) == last.load(std::memory_order_relaxed)) {
    return true;
  }
  PyObject *native = attribute(dtype, "isnative");
  swallow_error();
  const bool found = native != nullptr;
  Py_XDECREF(native);
  if (found) {
    Py_INCREF(Py_TYPE(dtype));  // for good, so that the address stays its own
    last.store(Py_TYPE(dtype));
  }
  return found;
}

bool read_with_dtype(Domain *domain, int32_t state, PyObject *payload, PyObject *dtype, Reading *out) {
  Py_buffer *view = out->view();
  bool viewed = PyObject_GetBuffer(payload, view, PyBUF_FULL_RO) == 0;
  swallow_error();
  if (viewed && view->ndim == 0 && is_number(kind_of_format(view->format, view->itemsize))) {
    put_number(kind_of_format(view->format, view->itemsize), static_cast<const char *>(view->buf), out);
    return true;
  }
  PyObject *plain = nullptr;
  int dimensions = viewed ? rank_of(view) : -1;
  if (!viewed) {  // dates and objects have no buffer
    PyObject *rank = attribute(payload, "ndim");
    const long n = rank != nullptr ? PyLong_AsLong(rank) : -1;
    Py_XDECREF(rank);
    swallow_error();
    if (n < 0) {
      return false;
    }
    dimensions = n > kMaxDimensions ? 1 : static_cast<int>(n);
  }
  const ArrayLayout layout = dtype_layout(domain, state, dtype, dimensions);
  if (layout.json) {
    return read_json(domain, state, payload, out);
  }
  if (!layout.as_is || !viewed) {
    plain = ask_layouts("plain_array", payload, dtype);
    if (plain == nullptr || plain == Py_None) {
      Py_XDECREF(plain);
      return false;
    }
    out->hold(plain);
    view = out->view();
    if (PyObject_GetBuffer(plain, view, PyBUF_FULL_RO) < 0) {
      swallow_error();
      return false;
    }
  }
  copy_view(layout.schema, view, dimensions, out);
  return true;
}

bool read_plain_buffer(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  Py_buffer *view = out->view();
  if (PyObject_GetBuffer(payload, view, PyBUF_FULL_RO) < 0) {
    swallow_error();
    return false;
  }
  Kind kind = kind_of_format(view->format, view->itemsize);
  if (kind == Kind::uint8 && (PyMemoryView_Check(payload) || PyByteArray_Check(payload))) {
    kind = Kind::byte;  // what bytes and files give
  }
  int dimensions = rank_of(view);
  if (dimensions == 0) {
    dimensions = 1;
  }
  if (kind != Kind::none) {
    copy_view(array_schema(domain, state, kind, dimensions), view, dimensions, out);
    return true;
  }
  copy_view(NVTX_TYPE_PAYLOAD_SCHEMA_RAW, view, 0, out);  // structures of ctypes and the like: their bytes
  return true;
}

// The kind that every item of a list has, or that all of them fit in; none where there is no such kind.
Kind common_kind(PyObject *const *items, Py_ssize_t n) {
  Kind all = Kind::none;
  bool negative = false;
  bool wide = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject *item = items[i];
    Kind kind = Kind::none;
    if (PyBool_Check(item)) {
      kind = Kind::boolean;
    } else if (PyLong_CheckExact(item)) {
      int overflow = 0;
      const long long value = PyLong_AsLongLongAndOverflow(item, &overflow);
      negative = negative || overflow < 0 || (overflow == 0 && value < 0);
      wide = wide || overflow > 0;
      if (overflow < 0 || (overflow > 0 && kind_of_value(item) == Kind::none)) {
        return Kind::none;
      }
      kind = Kind::int64;
    } else if (PyFloat_CheckExact(item)) {
      kind = Kind::float64;
    } else {
      kind = kind_of_value(item);
      if (kind == Kind::none || kind == Kind::text) {
        return Kind::none;
      }
    }
    if (all == Kind::none || all == kind) {
      all = kind;
    } else if ((all == Kind::int64 && kind == Kind::float64) ||
               (all == Kind::float64 && kind == Kind::int64)) {
      all = Kind::float64;
    } else {
      return Kind::none;
    }
  }
  if (all == Kind::int64 && wide) {
    return negative ? Kind::none : Kind::uint64;
  }
  return all;
}

// The first `n` of `all` items.
void read_items(Domain *domain, int32_t state, PyObject *const *items, Py_ssize_t n, Py_ssize_t all,
                Kind kind, Reading *out) {
  const size_t size = size_of(kind);
  n = items_read(n, size);
  const Py_ssize_t told = n < all ? length_told(all, n) : n;
  char *at = array_room(out, &told, 1, static_cast<size_t>(n) * size);
  if (at == nullptr) {
    return;
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    write_value(items[i], kind, at + 8 + static_cast<size_t>(i) * size);
  }
  add_array(array_schema(domain, state, kind, 1), at, 1, static_cast<size_t>(n) * size, out);
}

// The first items, at most `most`, of a list that other code may change meanwhile, or of a tuple: as they are now.
PyObject *first_items(PyObject *payload, Py_ssize_t most) {
  if (PySequence_Fast_GET_SIZE(payload) <= most) {
    return PyList_Check(payload) ? PyList_AsTuple(payload) : PyTuple_GetSlice(payload, 0, most);
  }
  if (PyTuple_Check(payload)) {
    return PyTuple_GetSlice(payload, 0, most);
  }
  PyObject *part = PyList_GetSlice(payload, 0, most);
  PyObject *items = part != nullptr ? PyList_AsTuple(part) : nullptr;
  Py_XDECREF(part);
  return items;
}

bool read_range(Domain *domain, int32_t state, PyObject *range, Reading *out) {
  const Py_ssize_t n = PyObject_Size(range);
  long long ends[3] = {};  // start, stop, step
  constexpr const char *names[] = {"start", "stop", "step"};
  bool fits = true;
  for (int i = 0; i < 3; ++i) {
    PyObject *end = attribute(range, names[i]);
    int overflow = 0;
    ends[i] = end != nullptr ? PyLong_AsLongLongAndOverflow(end, &overflow) : 0;
    fits = fits && end != nullptr && overflow == 0;
    Py_XDECREF(end);
  }
  swallow_error();
  if (!fits) {
    return read_json(domain, state, range, out);
  }
  if (n < 0 || n > kMaxRange) {
    char *at = out->room(24);
    std::memcpy(at, ends, 24);
    out->add(builtin_schema(domain, state, Builtin::range), at, 24);
    return true;
  }
  const size_t bytes = static_cast<size_t>(n) * 8;
  char *at = array_room(out, &n, 1, bytes);
  for (Py_ssize_t i = 0; at != nullptr && i < n; ++i) {
    const long long value = ends[0] + i * ends[2];
    std::memcpy(at + 8 + 8 * i, &value, 8);
  }
  add_array(array_schema(domain, state, Kind::int64, 1), at, 1, bytes, out);
  return true;
}

}  // namespace

bool number_of_buffer(PyObject *payload, Reading *out) {
  // Arrays, bytes and views have a length; NumPy's scalars have none.
  const PySequenceMethods *sequence = Py_TYPE(payload)->tp_as_sequence;
  if (sequence != nullptr && sequence->sq_length != nullptr && !has_attribute(payload, "dtype")) {
    return false;
  }
  Py_buffer view;
  if (PyObject_GetBuffer(payload, &view, PyBUF_FULL_RO) < 0) {
    swallow_error();
    return false;
  }
  const Kind kind = kind_of_format(view.format, view.itemsize);
  const bool number = view.ndim == 0 && is_number(kind);
  if (number) {
    put_number(kind, static_cast<const char *>(view.buf), out);
  }
  PyBuffer_Release(&view);
  return number;
}

bool read_bytes(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  if (PyByteArray_Check(payload)) {
    return read_plain_buffer(domain, state, payload, out);
  }
  if (!PyBytes_Check(payload)) {
    return false;
  }
  const Py_ssize_t all = PyBytes_GET_SIZE(payload);
  const Py_ssize_t n = items_read(all, 1);
  const Py_ssize_t told = n < all ? length_told(all, n) : n;
  char *at = array_room(out, &told, 1, static_cast<size_t>(n));
  if (at != nullptr) {
    std::memcpy(at + 8, PyBytes_AS_STRING(payload), static_cast<size_t>(n));
    add_array(array_schema(domain, state, Kind::byte, 1), at, 1, static_cast<size_t>(n), out);
  }
  return true;
}

bool read_array(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  PyObject *dtype = nullptr;
  if (PyObject_CheckBuffer(payload) || Py_TYPE(payload)->tp_as_number != nullptr) {
    dtype = dtype_of(payload);
  }
  if (dtype != nullptr) {
    const bool done = is_numpy(dtype) && read_with_dtype(domain, state, payload, dtype, out);
    Py_DECREF(dtype);
    if (done) {
      return true;
    }
  }
  return PyObject_CheckBuffer(payload) && read_plain_buffer(domain, state, payload, out);
}

bool read_sequence(Domain *domain, int32_t state, PyObject *payload, Reading *out) {
  if (PyRange_Check(payload)) {
    return read_range(domain, state, payload, out);
  }
  if (!PyList_Check(payload) && !PyTuple_Check(payload)) {
    return false;
  }
  if (PyTuple_Check(payload) && !PyTuple_CheckExact(payload) && has_attribute(payload, "_fields")) {
    return false;  // a named tuple, whose names are worth recording
  }
  PyObject *items = nullptr;
  Kind kind = Kind::float64;
  Py_ssize_t n = 0;
  // Most items have eight bytes; more are looked at where they have fewer.
  for (size_t size = 8; size > 0;) {
    Py_XDECREF(items);
    items = first_items(payload, items_read(PY_SSIZE_T_MAX, size));
    if (items == nullptr) {
      swallow_error();
      return true;
    }
    n = PyTuple_GET_SIZE(items);
    kind = n == 0 ? Kind::float64 : common_kind(reinterpret_cast<PyTupleObject *>(items)->ob_item, n);
    const bool more = kind != Kind::none && size_of(kind) < size && n == items_read(PY_SSIZE_T_MAX, size);
    size = more ? size_of(kind) : 0;
  }
  const Py_ssize_t now = PySequence_Fast_GET_SIZE(payload);
  if (kind != Kind::none) {
    read_items(domain, state, reinterpret_cast<PyTupleObject *>(items)->ob_item, n, now > n ? now : n, kind,
               out);
    Py_DECREF(items);
    return true;
  }
  // Arrays, structures: what NumPy makes of them, where the program uses NumPy. Else JSON.
  PyObject *array = ask_layouts("array_of", items);
  Py_DECREF(items);
  if (array != nullptr && array != Py_None) {
    out->hold(array);
    return read_array(domain, state, array, out);
  }
  Py_XDECREF(array);
  return read_json(domain, state, payload, out);
}

}  // namespace warplens::binding
