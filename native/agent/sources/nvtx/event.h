// Resolves the attributes of an NVTX event to numbers.
// Handles are our numbers (string id, domain number) cast to pointers, so the recording path needs
// no look-up.
#pragma once

#include "agent/sources/nvtx/extension/payload.h"
#include "text.h"

namespace warplens::agent {

inline uint16_t domain_of(nvtxDomainHandle_t handle) {
  return static_cast<uint16_t>(reinterpret_cast<uintptr_t>(handle));
}

template <typename Handle>
Handle to_handle(uint64_t number) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(number));
}

__attribute__((noinline, cold)) Label label_of_odd_size(ThreadLog &log, uint16_t domain,
                                                        const nvtxEventAttributes_t &event);
__attribute__((noinline)) void take_extended(ThreadLog &log, uint16_t domain,
                                             const nvtxEventAttributes_t &event, Label &label);

// By value: a label whose address nobody takes stays in registers.
__attribute__((noinline)) inline Label with_extended(ThreadLog &log, uint16_t domain,
                                                     const nvtxEventAttributes_t &event, Label label) {
  take_extended(log, domain, event, label);
  return label;
}

// Only the member that payloadType names is defined; the others may hold anything. False: not one number.
inline bool take_number(Label &label, const nvtxEventAttributes_t &event) {
  switch (event.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      label.payload = event.payload.ullValue;
      break;
    case NVTX_PAYLOAD_TYPE_INT64:
      label.payload = static_cast<uint64_t>(event.payload.llValue);
      break;
    case NVTX_PAYLOAD_TYPE_DOUBLE:
      std::memcpy(&label.payload, &event.payload.dValue, sizeof(double));
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      label.payload = event.payload.uiValue;
      break;
    case NVTX_PAYLOAD_TYPE_INT32:
      label.payload = static_cast<uint64_t>(static_cast<int64_t>(event.payload.iValue));
      break;
    case NVTX_PAYLOAD_TYPE_FLOAT: {
      uint32_t bits = 0;
      std::memcpy(&bits, &event.payload.fValue, sizeof(bits));
      label.payload = bits;
      break;
    }
    default:
      return false;
  }
  label.flags |= static_cast<uint8_t>(event.payloadType);
  return true;
}

[[gnu::always_inline]] inline Label label_of(ThreadLog &log, uint16_t domain,
                                             const nvtxEventAttributes_t *event) {
  Label label;
  if (event == nullptr) {
    return label;
  }
  if (event->size < sizeof(nvtxEventAttributes_t)) [[unlikely]] {
    return label_of_odd_size(log, domain, *event);
  }
  label.category = event->category;
  if (event->colorType == NVTX_COLOR_ARGB) {
    label.color = event->color;
    label.flags = kFlagColor;
  }
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_REGISTERED:
      label.name = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(event->message.registered));
      break;
    case NVTX_MESSAGE_TYPE_ASCII:
      label.name = name_of(log, event->message.ascii);
      break;
    case NVTX_MESSAGE_TYPE_UNICODE:
      label.name = name_of(log, event->message.unicode);
      break;
    default:
      break;
  }
  if (event->payloadType != NVTX_PAYLOAD_UNKNOWN && !take_number(label, *event)) [[unlikely]] {
    return with_extended(log, domain, *event, label);  // last: payloads override what the attributes say
  }
  return label;
}

}  // namespace warplens::agent
