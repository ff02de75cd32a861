// Memory and references of one payload, released when its event was sent.
#include "reading.h"

namespace warplens::binding {

Reading::~Reading() {
  for (void *memory : heap_) {
    PyMem_RawFree(memory);
  }
  if (has_view_) {
    PyBuffer_Release(&view_);
  }
  for (PyObject *holder : holders_) {
    Py_XDECREF(holder);
  }
}

void Reading::hold(PyObject *object) {
  for (PyObject *&holder : holders_) {
    if (holder == nullptr) {
      holder = object;
      return;
    }
  }
  // Nobody holds more than an array, what it was converted to, a text, and the message. Lost rather than freed too early.
}

void Reading::add(uint64_t schema, const void *bytes, size_t size) {
  if (schema != 0 && bytes != nullptr && count < 2) {
    data[count++] = {schema, size, bytes};
  }
}

char *Reading::room(size_t size) {
  const size_t wanted = (size + 15) & ~size_t{15};
  if (wanted <= kInline - used_) {
    char *at = inline_ + used_;
    used_ += wanted;
    return at;
  }
  void *&memory = heap_[heap_[0] != nullptr];
  if (memory == nullptr) {
    memory = PyMem_RawMalloc(size);
    return static_cast<char *>(memory);
  }
  return nullptr;
}

Py_buffer *Reading::view() {
  if (has_view_) {
    PyBuffer_Release(&view_);
  }
  has_view_ = true;
  view_ = {};
  return &view_;
}

void Reading::put_into(nvtxEventAttributes_t *out) const {
  if (count > 0) {
    out->payloadType = NVTX_PAYLOAD_TYPE_EXT;
    out->reserved0 = static_cast<int32_t>(count);
    out->payload.ullValue = NVTX_POINTER_AS_PAYLOAD_ULLVALUE(data);
  } else {
    out->payloadType = type;
    out->reserved0 = 0;
    out->payload = number;
  }
}

}  // namespace warplens::binding
