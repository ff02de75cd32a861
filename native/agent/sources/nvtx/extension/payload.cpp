// The payload extension: payloads of events, and the calls that carry nothing else.
#include "payload.h"

#include <algorithm>
#include <cstring>

#include "agent/sources/nvtx/define.h"
#include "agent/sources/nvtx/event.h"
#include "agent/sources/nvtx/foreign.h"
#include "agent/watch.h"
#include "extension.h"
#include "schemas.h"

namespace warplens::agent {
namespace {

constexpr size_t kMostPayloads = 4096;  // of one event; more is a structure that was never filled in

// One payload into the log, behind those of the same event.
void write_one(ThreadLog &log, uint16_t domain, const nvtxPayloadData_t *all, size_t count, size_t number,
               uint32_t flags, Change &change, DeferredFacts *facts) {
  nvtxPayloadData_t payload = all[number];
  payload.size = payload_size(domain, payload);
  if (payload.size == 0) {
    return;
  }
  const Schema *schema = find_schema(domain, payload.schemaId);
  if (schema != nullptr && schema->is_ours) {
    copy_payload(log, domain, *schema, payload, all, count, change, facts);
    return;
  }
  change.label.flags |= kPayloadMask;
  BlobLog::Blob blob;
  if (schema == nullptr || (schema->plain && facts == nullptr)) {
    blob = log.write_blob({0, flags, payload.schemaId, 0}, payload.payload, payload.size);
  } else {
    CopiedPayload copy = copy_payload(log, domain, *schema, payload, all, count, change, facts);
    if (copy.cut) {
      flags |= kBlobCut;
    }
    blob = log.write_blob({0, flags, payload.schemaId, 0}, copy.bytes.data(), copy.bytes.size());
  }
  if (blob.head == nullptr) {
    return;
  }
  if (change.last_blob == nullptr) {
    change.label.payload = blob.offset;
  } else {
    std::atomic_ref(change.last_blob->next).store(blob.offset, std::memory_order_release);
  }
  change.last_blob = blob.head;
}

// The payload type of a number that NVTX has an event attribute for too; 0: it is none.
uint8_t number_type(const nvtxPayloadData_t &payload) {
  uint8_t type = 0;
  switch (payload.schemaId) {
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT64:
      type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
      break;
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64:
      type = NVTX_PAYLOAD_TYPE_INT64;
      break;
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64:
      type = NVTX_PAYLOAD_TYPE_DOUBLE;
      break;
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT32:
      type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
      break;
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
      type = NVTX_PAYLOAD_TYPE_INT32;
      break;
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32:
      type = NVTX_PAYLOAD_TYPE_FLOAT;
      break;
    default:
      return 0;
  }
  size_t size = predefined_extent(payload.schemaId).size;
  return payload.payload != nullptr && (payload.size == size || payload.size == SIZE_MAX) ? type : 0;
}

// What the end of a range brings. One number, alone or with new attributes, needs no blob.
Change change_at_end(ThreadLog &log, uint16_t domain, const nvtxPayloadData_t *payloads, size_t count) {
  Change change;
  uint8_t type = payloads != nullptr && count != 0 ? number_type(payloads[0]) : 0;
  const Schema *other = type != 0 && count == 2 ? find_schema(domain, payloads[1].schemaId) : nullptr;
  if (type == 0 || count > 2 || (count == 2 && (other == nullptr || !other->is_ours))) {
    take_payloads(log, domain, payloads, count, kBlobAtEnd, change);
    return change;
  }
  take_payloads(log, domain, payloads + 1, count - 1, kBlobAtEnd, change);
  std::memcpy(&change.label.payload, payloads[0].payload, predefined_extent(payloads[0].schemaId).size);
  change.label.flags |= type;
  return change;
}

Label label_of(ThreadLog &log, uint16_t domain, const nvtxPayloadData_t *payloads, size_t count) {
  Label label;
  Change change;
  take_payloads(log, domain, payloads, count, 0, change);
  merge(label, change);
  return label;
}

// Whether the payload of a range's end is recorded: while no window is open, nothing is written for ranges that lie outside all
// of them. `begin` says when the range began, 0 where it is not open: then the loss is counted.
template <typename Begin>
bool is_wanted(ThreadLog &log, uint64_t now, const Begin &begin) {
  uint8_t edge = 0;
  uint64_t start = log.records(now) ? 0 : begin();
  return start == 0 || log.keeps(start, now, edge);
}

using Domain = nvtxDomainHandle_t;
using Payloads = const nvtxPayloadData_t *;

template <bool watchful>
ThreadLog *log_of(Domain domain) {
  if constexpr (watchful) {
    if (is_left_out(domain_of(domain))) {
      return nullptr;
    }
  }
  return thread_log();
}

template <bool watchful>
void mark(Domain domain, Payloads payloads, size_t count) {
  if (ThreadLog *log = log_of<watchful>(domain)) {
    uint64_t now = now_ns(log->clock());
    if (!log->records(now)) {
      return;
    }
    uint16_t number = domain_of(domain);
    Label label = label_of(*log, number, payloads, count);
    log->append({RecordType::mark, label.flags, number, label.name}, now, now, label);
  }
}

template <bool watchful>
int push(Domain domain, Payloads payloads, size_t count) {
  ThreadLog *log = log_of<watchful>(domain);
  uint16_t number = domain_of(domain);
  return log == nullptr ? NVTX_NO_PUSH_POP_TRACKING
                        : push_range<watchful>(*log, number, label_of(*log, number, payloads, count));
}

template <bool watchful>
int pop(Domain domain, Payloads payloads, size_t count) {
  ThreadLog *log = log_of<watchful>(domain);
  if (log == nullptr) {
    return NVTX_NO_PUSH_POP_TRACKING;
  }
  uint64_t now = now_ns(log->clock());
  uint16_t number = domain_of(domain);
  bool wanted = is_wanted(*log, now, [&] {
    const EventRecord *open = log->innermost(number);
    return open == nullptr ? 0 : open->start;
  });
  return wanted ? pop_range<watchful>(*log, number, now, change_at_end(*log, number, payloads, count))
                : pop_range<watchful>(*log, number, now);
}

template <bool watchful>
nvtxRangeId_t start(Domain domain, Payloads payloads, size_t count) {
  ThreadLog *log = log_of<watchful>(domain);
  uint16_t number = domain_of(domain);
  return log == nullptr ? 0 : start_range<watchful>(*log, number, label_of(*log, number, payloads, count));
}

template <bool watchful>
void end(Domain domain, nvtxRangeId_t id, Payloads payloads, size_t count) {
  ThreadLog *log = log_of<watchful>(domain);
  if (log != nullptr && id != 0) {
    uint64_t now = now_ns(log->clock());
    if (!is_wanted(*log, now, [&] { return log->process()->begin_of(*log, id); })) {
      end_range<watchful>(*log, id, now);
      return;
    }
    Change change = change_at_end(*log, domain_of(domain), payloads, count);
    if (!end_range<watchful>(*log, id, now, &change) &&
        (change.last_blob != nullptr || change.has_number())) {
      log->process()->file().count(kLostPayloads);
    }
  }
}

uint64_t register_scope(Domain domain, const nvtxScopeAttr_t *attributes) {
  return attributes == nullptr ? 0 : guarded(uint64_t{0}, [&] {
    nvtxScopeAttr_t whole{};
    std::memcpy(&whole, attributes, std::min(attributes->structSize, sizeof(whole)));
    uint64_t id = whole.scopeId >= kStaticIds ? whole.scopeId : new_id();
    Json json("scope");
    json.member("path", whole.path == nullptr ? "" : whole.path);
    json.member("parent", whole.parentScope);
    define(domain_of(domain), Kind::scope, id, json.close());
    return id;
  });
}

template <bool watchful>
void fill_events(Slots slots) {
  slots.set(NVTX3EXT_CBID_nvtxMarkPayload, mark<watchful>);
  slots.set(NVTX3EXT_CBID_nvtxRangePushPayload, push<watchful>);
  slots.set(NVTX3EXT_CBID_nvtxRangePopPayload, pop<watchful>);
  slots.set(NVTX3EXT_CBID_nvtxRangeStartPayload, start<watchful>);
  slots.set(NVTX3EXT_CBID_nvtxRangeEndPayload, end<watchful>);
}

}  // namespace

void fill_payload(Slots slots) {
  slots.set(NVTX3EXT_CBID_nvtxPayloadSchemaRegister, register_schema);
  slots.set(NVTX3EXT_CBID_nvtxPayloadEnumRegister, register_enum);
  (is_watchful() ? fill_events<true> : fill_events<false>)(slots);
  // Whether or not something is recorded now: clients ask once and remember.
  slots.set(
      NVTX3EXT_CBID_nvtxDomainIsEnabled,
      +[](Domain domain) -> uint8_t { return is_left_out(domain_of(domain)) ? 0 : 1; });
  slots.set(NVTX3EXT_CBID_nvtxScopeRegister, register_scope);
}

size_t payload_size(uint16_t domain, const nvtxPayloadData_t &payload) {
  if (payload.payload == nullptr || payload.size != SIZE_MAX) {
    return payload.payload == nullptr ? 0 : payload.size;
  }
  if (is_string(payload.schemaId)) {
    std::string text;
    append_terminated(text, payload.payload, predefined_extent(payload.schemaId).size, BlobLog::kLargest);
    return text.size();
  }
  return extent_of(domain, payload.schemaId, 0).size;
}

void take_payloads(ThreadLog &log, uint16_t domain, const nvtxPayloadData_t *payloads, size_t count,
                   uint32_t flags, Change &change, DeferredFacts *facts) {
  SpoolFile &file = log.process()->file();
  ThreadLog::Busy busy(log);
  if (!busy || (payloads == nullptr && count != 0) || count > kMostPayloads) {
    file.count(kLostPayloads);
    change.label.flags |= kPayloadMask;
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    try {
      write_one(log, domain, payloads, count, i, flags, change, facts);
    } catch (...) {  // out of memory
      file.count(kLostPayloads);
    }
  }
}

void merge(Label &label, const Change &change) {
  if (change.name) {
    label.name = change.label.name;
  }
  if (change.category) {
    label.category = change.label.category;
  }
  if ((change.label.flags & kFlagColor) != 0) {
    label.color = change.label.color;
  }
  label.flags |= change.label.flags;
  label.payload = change.label.payload;
}

void take_extended(ThreadLog &log, uint16_t domain, const nvtxEventAttributes_t &event, Label &label) {
  Change change;
  if (event.payloadType == NVTX_PAYLOAD_TYPE_EXT && event.reserved0 > 0) {
    const auto *payloads =
        reinterpret_cast<const nvtxPayloadData_t *>(static_cast<uintptr_t>(event.payload.ullValue));
    take_payloads(log, domain, payloads, static_cast<size_t>(event.reserved0), 0, change);
  } else {  // no type that NVTX knows
    log.process()->file().count(kLostPayloads);
    change.label.flags = kPayloadMask;
  }
  merge(label, change);
}

Label label_of_odd_size(ThreadLog &log, uint16_t domain, const nvtxEventAttributes_t &event) {
  nvtxEventAttributes_t whole{};
  std::memcpy(&whole, &event, event.size);  // an older, shorter structure: what it does not have is zero
  whole.size = sizeof(whole);
  return label_of(log, domain, &whole);
}

}  // namespace warplens::agent
