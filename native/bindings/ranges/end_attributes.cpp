// Changes a range at its end: message, colour, category, payload.
#include <nvtx3/nvToolsExtPayload.h>

#include <cstring>

#include "bindings/payloads/payload.h"
#include "event.h"

namespace warplens::binding {

namespace {

constexpr int kMessage = 1;
constexpr int kColor = 2;
constexpr int kCategory = 4;
constexpr int kText = 8;  // the message, where it is not registered
constexpr size_t kFixed = 16;

// Color and category travel as entries of NVTX's own types, the message as one with the flag for that: see
// warplens.nvtx._layouts.ending(). Returns false if there is nothing to report.
void add_attributes(Domain *domain, int32_t state, Event *last, Reading *out) {
  int parts = 0;
  uint64_t message = 0;
  const uint32_t color = last->argb;
  uint32_t category = 0;
  const char *text = nullptr;
  PyObject *holder = nullptr;
  if (last->message != nullptr) {
    message = reinterpret_cast<uint64_t>(registered(domain, last->message));
    parts |= message != 0 ? kMessage : kText;
    text = message == 0 ? utf8(last->message, &holder) : nullptr;
  }
  if (last->color != nullptr) {
    parts |= kColor;
  }
  if (last->category != nullptr) {
    parts |= kCategory;
    category = category_number(last, state);
  }
  if (parts != 0) {
    const size_t length = text != nullptr ? std::strlen(text) + 1 : 0;
    PyObject *which = PyLong_FromLong(parts);
    PyObject *layout = which != nullptr ? ask_layouts("ending", which) : nullptr;
    char *at = out->room(kFixed + length);
    if (layout != nullptr && at != nullptr) {
      std::memcpy(at, &message, 8);
      std::memcpy(at + 8, &color, 4);
      std::memcpy(at + 12, &category, 4);
      if (length > 0) {
        std::memcpy(at + kFixed, text, length);
      }
      out->add(layout_schema(domain, state, layout), at, kFixed + length);
    }
    Py_XDECREF(layout);
    Py_XDECREF(which);
  }
  Py_XDECREF(holder);
}

// A plain number has no place in the extension: it goes as a payload of NVTX's type for it.
void add_number(const Reading &number, Reading *out) {
  constexpr uint64_t types[] = {0,
                                NVTX_PAYLOAD_ENTRY_TYPE_UINT64,
                                NVTX_PAYLOAD_ENTRY_TYPE_INT64,
                                NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64,
                                NVTX_PAYLOAD_ENTRY_TYPE_UINT32,
                                NVTX_PAYLOAD_ENTRY_TYPE_INT32,
                                NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32};
  if (number.type > 0 && number.type < 7) {
    const size_t size = number.type > NVTX_PAYLOAD_TYPE_DOUBLE ? 4 : 8;
    char *at = out->room(size);
    std::memcpy(at, &number.number, size);
    out->add(types[number.type], at, size);
  }
}

// Reads `last` for `domain` into extended payloads.
void read_ending(Domain *domain, int32_t state, Event *last, Reading *payload, Reading *out) {
  handle_for(domain, state);
  move_event(last, domain);
  if (last->payload != nullptr) {
    read_payload(domain, state, last->payload, payload);
    if (payload->count > 0) {
      out->add(payload->data[0].schemaId, payload->data[0].payload, payload->data[0].size);
    } else {
      add_number(*payload, out);
    }
  }
  add_attributes(domain, state, last, out);
}

}  // namespace

int pop_with(Domain *domain, int32_t state, Event *last) {
  const KeptError error;  // the last to go: freeing what was read may run Python
  Reading payload;
  Reading all;
  if (payload_call_taken(domain, state, NVTX3EXT_CBID_nvtxRangePopPayload)) {
    read_ending(domain, state, last, &payload, &all);
  }
  if (all.count == 0) {
    return pop(domain, state);
  }
  tell_task();
  --t_task.pushes;
  return nvtxRangePopPayload(domain->handle, all.data, all.count);
}

void end_with(Domain *domain, int32_t state, nvtxRangeId_t id, Event *last) {
  const KeptError error;
  Reading payload;
  Reading all;
  if (payload_call_taken(domain, state, NVTX3EXT_CBID_nvtxRangeEndPayload)) {
    read_ending(domain, state, last, &payload, &all);
  }
  if (all.count == 0) {
    return end(domain, state, id);
  }
  nvtxRangeEndPayload(domain->handle, id, all.data, all.count);
}

}  // namespace warplens::binding
