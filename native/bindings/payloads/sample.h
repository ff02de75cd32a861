// Samples of counters as bytes.
#pragma once

#include "bindings/values/compat.h"
#include "schemas.h"

namespace warplens::binding {

// How one sample is laid out: from the tuple that warplens.nvtx._counters.spec_of() makes.
struct Sample {
  Sample() = default;
  ~Sample();
  Sample(const Sample &) = delete;
  Sample &operator=(const Sample &) = delete;

  struct Field {
    PyObject *name;  // borrowed from the tuple; empty where the sample is one number
    Kind kind;
    uint32_t offset;
  };
  Py_ssize_t size = 0;
  int count = 0;  // 0: only NumPy can write one
  Field *fields = nullptr;
  PyObject *dtype = nullptr;  // borrowed from the counter
};

bool read_sample(PyObject *spec, PyObject *dtype, Sample *out);

// Bytes for the length of one call.
class Packed {
 public:
  Packed() = default;
  ~Packed();
  Packed(const Packed &) = delete;
  Packed &operator=(const Packed &) = delete;

  char *room(size_t bytes);  // null without memory
  bool borrow(PyObject *buffer, int flags);
  void hold(PyObject *object) { holder_ = object; }
  const Py_buffer &view() const { return view_; }

  const void *data = nullptr;
  size_t size = 0;

 private:
  alignas(16) char inline_[256];
  void *heap_ = nullptr;
  Py_buffer view_ = {};
  PyObject *holder_ = nullptr;
};

// False, without an exception, where the value does not fit.
bool pack_sample(const Sample &sample, PyObject *value, Packed *out);
bool pack_samples(const Sample &sample, PyObject *values, Packed *out);
bool pack_times(PyObject *times, Packed *out);

}  // namespace warplens::binding
