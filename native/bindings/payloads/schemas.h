// Registers the layouts of a domain's extended payloads with its tool.
//
// warplens.nvtx._layouts describes a layout as a tuple; here it is registered, once per domain, and found again.
#pragma once

#include <cstdint>

#include "bindings/domain.h"
#include "bindings/values/compat.h"

namespace warplens::binding {

// What one value is; the same numbers as in warplens.nvtx._layouts.
enum class Kind : uint8_t {
  none,
  boolean,
  int8,
  uint8,
  int16,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  float16,
  float32,
  float64,
  complex64,
  complex128,
  byte,
  text,
};
inline constexpr int kKinds = 17;
inline constexpr int kMaxDimensions = 8;  // arrays of more are sent flat

// Bytes of one value, also its alignment but for complex numbers; 0 for text.
size_t size_of(Kind kind);

// The kind that a one-letter format of the struct module means on this machine; none where it is no number.
Kind kind_of_format(const char *format, Py_ssize_t itemsize);

enum class Builtin : uint8_t { json, text, boolean, truth, complex64, complex128, range, count };

// Schema numbers in `domain` for the listener `state`; 0 where the tool takes none. No exceptions.
uint64_t builtin_schema(Domain *domain, int32_t state, Builtin which);
uint64_t array_schema(Domain *domain, int32_t state, Kind element, int dimensions);
uint64_t layout_schema(Domain *domain, int32_t state, PyObject *layout);  // a tuple of _layouts

// What is known of arrays of a NumPy dtype.
struct ArrayLayout {
  uint64_t schema = 0;
  Kind scalar = Kind::none;  // a plain number, where there are no dimensions
  bool as_is = false;  // the buffer holds what the schema says; else _layouts.plain() makes such an array
  bool json = false;   // no layout can hold it
};
ArrayLayout dtype_layout(Domain *domain, int32_t state, PyObject *dtype, int dimensions);

// The schema of a dict with these keys (exact str) and kinds; the fixed parts come in order, then the texts.
// False where the tool takes none, or where the domain has its 256: then JSON.
inline constexpr int kMaxDictSchemas = 256;
inline constexpr int kMaxDictKeys = 64;
struct DictLayout {
  uint64_t schema = 0;
  uint32_t fixed = 0;  // bytes before the first text
  uint32_t offsets[kMaxDictKeys];
};
bool dict_layout(Domain *domain, int32_t state, PyObject *const *keys, const Kind *kinds, int count,
                 uint64_t hash, DictLayout *out);

// The scope that a path (an exact str) means in `domain`, registered once.
uint64_t scope_number(Domain *domain, int32_t state, PyObject *path);

// Calls a function of warplens.nvtx._layouts; null without an exception.
PyObject *ask_layouts(const char *function, PyObject *a, PyObject *b = nullptr);

// Without an exception, also where asking raises.
bool has_attribute(PyObject *o, const char *name);

// PyObject_GetAttrString() without its new text at each call: CPython's method cache keeps the texts it was asked with,
// thousands of them, in the place of the program's own.
PyObject *attribute(PyObject *o, const char *name);

// Clears the exception that recording met; an interrupt by the user is put off, not lost.
void swallow_error();

// Another tool has attached: it knows nothing that an earlier tool received.
void forget_schemas(Domain *domain);

}  // namespace warplens::binding
