// Reads a payload for one event.
// It holds what NVTX gets, and what must live until the call returns.
#pragma once

#include <nvtx3/nvToolsExtPayload.h>

#include <cstddef>
#include <cstdint>

#include "bindings/values/compat.h"

namespace warplens::binding {

// Of a larger payload only the beginning is read, this much and what makes it count as cut: no tool keeps more, and the
// program would wait for it.
inline constexpr size_t kMostBytes = size_t{1} << 20;

class Reading {
 public:
  Reading() = default;
  ~Reading();
  Reading(const Reading &) = delete;
  Reading &operator=(const Reading &) = delete;

  // Either a plain number (`type` is one of NVTX's, `number` holds it), or up to two extended payloads, or nothing.
  int32_t type = NVTX_PAYLOAD_UNKNOWN;
  decltype(nvtxEventAttributes_t::payload) number = {};
  nvtxPayloadData_t data[2] = {};
  size_t count = 0;

  // A further extended payload. Without a schema (the tool takes none) it is left out.
  void add(uint64_t schema, const void *bytes, size_t size);

  // Memory that lives as long as this; null without memory. Asked for at most twice.
  char *room(size_t size);

  // Keeps an object (takes the reference), or gives a view back in the end.
  void hold(PyObject *object);
  Py_buffer *view();

  // Attributes that carry it.
  void put_into(nvtxEventAttributes_t *out) const;

 private:
  static constexpr size_t kInline = 512;
  alignas(16) char inline_[kInline];
  size_t used_ = 0;
  void *heap_[2] = {};
  PyObject *holders_[6] = {};
  Py_buffer view_;
  bool has_view_ = false;
};

}  // namespace warplens::binding
