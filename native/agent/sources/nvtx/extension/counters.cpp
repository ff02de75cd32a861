// The counters extension: counters of one number or a structure of them, sampled one by one or in batches.
#include <algorithm>

#include "agent/sources/nvtx/define.h"
#include "agent/sources/nvtx/event.h"
#include "agent/sources/nvtx/time.h"
#include "agent/watch.h"
#include "extension.h"
#include "schemas.h"

namespace warplens::agent {
namespace {

struct Counter {
  uint64_t schema = 0;       // a schema, or a predefined type of number
  uint64_t time_domain = 0;  // of batches
  bool operator==(const Counter &) const = default;
};

Registry<Counter> g_counters;

// The record's 32 bits hold the lower half: the program's own numbers are below 2^32, and ours count from 1 above.
uint32_t short_id(uint64_t id) {
  return static_cast<uint32_t>(id);
}

uint64_t register_counter(nvtxDomainHandle_t handle, const nvtxCounterAttr_t *attributes) {
  return attributes == nullptr ? 0 : guarded(uint64_t{0}, [&] {
    nvtxCounterAttr_t whole{};
    std::memcpy(&whole, attributes, std::min(attributes->structSize, sizeof(whole)));
    uint16_t domain = domain_of(handle);
    uint64_t id = whole.counterId >= kStaticIds ? whole.counterId : new_id();
    Counter counter{whole.schemaId, semantics_time_domain(whole.semantics)};
    const Counter *known = g_counters.find(domain, id);
    if (known == nullptr || *known != counter) {
      g_counters.insert(domain, id, std::move(counter));
    }
    Json json("counter");
    json.member("name", whole.name);
    json.member("description", whole.description);
    json.member("schema", whole.schemaId);
    json.member("scope", whole.scopeId);
    json.word("semantics", semantics_json(whole.semantics));
    define(domain, Kind::counter, short_id(id), json.close());
    return id;
  });
}

void append(ThreadLog &log, uint16_t domain, uint64_t counter, uint64_t time, Label value) {
  value.category = short_id(counter);
  log.append({RecordType::sample, value.flags, domain, 0}, time, time, value);
}

template <bool watchful>
void sample_number(nvtxDomainHandle_t domain, uint64_t counter, uint8_t type, uint64_t bits) {
  if constexpr (watchful) {
    if (is_left_out(domain_of(domain))) {
      return;
    }
  }
  if (ThreadLog *log = thread_log()) {
    uint64_t now = now_ns(log->clock());
    if (log->records(now)) [[likely]] {
      Label value;
      value.flags = type;
      value.payload = bits;
      append(*log, domain_of(domain), counter, now, value);
    }
  }
}

template <typename Number>
uint64_t bits_of(const void *at, bool widen) {
  Number number;
  std::memcpy(&number, at, sizeof(number));
  if (widen) {
    return static_cast<uint64_t>(static_cast<int64_t>(number));
  }
  uint64_t bits = 0;
  std::memcpy(&bits, &number, sizeof(number));
  return bits;
}

// A single number of a predefined type fits into the record.
bool take_single(Label &value, uint64_t type, const void *at, size_t size) {
  Extent extent = predefined_extent(type);
  if (extent.size == 0 || extent.size != size || size > 8) {
    return false;
  }
  value.flags = NVTX_PAYLOAD_TYPE_INT64;
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32:
      value.flags = NVTX_PAYLOAD_TYPE_FLOAT;
      value.payload = bits_of<uint32_t>(at, false);
      return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64:
      value.flags = NVTX_PAYLOAD_TYPE_DOUBLE;
      value.payload = bits_of<uint64_t>(at, false);
      return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT8:
      value.payload = bits_of<int8_t>(at, true);
      return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_SHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT16:
      value.payload = bits_of<int16_t>(at, true);
      return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_INT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
      value.payload = bits_of<int32_t>(at, true);
      return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64:
      value.payload = bits_of<int64_t>(at, true);
      return true;
    case NVTX_PAYLOAD_ENTRY_TYPE_UCHAR:
    case NVTX_PAYLOAD_ENTRY_TYPE_USHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT:
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT8:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_SIZE:
      value.flags = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
      std::memcpy(&value.payload, at, size);
      return true;
    default:
      return false;
  }
}

Label value_of(ThreadLog &log, uint16_t domain, const Counter *counter, const void *at, size_t size,
               DeferredFacts *facts = nullptr) {
  Label value;
  if (counter != nullptr && take_single(value, counter->schema, at, size)) {
    return value;
  }
  nvtxPayloadData_t payload{counter == nullptr ? NVTX_TYPE_PAYLOAD_SCHEMA_RAW : counter->schema, size, at};
  Change change;
  take_payloads(log, domain, &payload, 1, 0, change, facts);
  value.flags = change.label.flags & kPayloadMask;
  value.payload = change.label.payload;
  return value;
}

void sample(nvtxDomainHandle_t handle, uint64_t counter, const void *at, size_t size) {
  ThreadLog *log = thread_log();
  if (log != nullptr && at != nullptr && size != 0) {
    uint64_t now = now_ns(log->clock());
    uint16_t domain = domain_of(handle);
    if (is_left_out(domain) || !log->records(now)) {
      return;
    }
    append(*log, domain, counter, now, value_of(*log, domain, g_counters.find(domain, counter), at, size));
  }
}

void sample_nothing(nvtxDomainHandle_t domain, uint64_t counter, uint8_t reason) {
  if (ThreadLog *log = thread_log()) {
    uint64_t now = now_ns(log->clock());
    if (!is_left_out(domain_of(domain)) && log->records(now)) {
      Label value;
      value.color = reason;
      append(*log, domain_of(domain), counter, now, value);
    }
  }
}

// When sample i of n was taken, as the batch says.
struct BatchTimes {
  const int64_t *times = nullptr;
  size_t count = 0;
  bool pair = false;
  bool at_end = false;

  bool get(size_t i, size_t n, int64_t &time) const {
    if (!pair) {
      time = i < count ? times[i] : 0;
      return i < count;
    }
    if (count < 2) {
      return false;
    }
    // One time and the distance between samples: the time of the first sample, or of the last.
    auto steps = at_end ? static_cast<int64_t>(i) - static_cast<int64_t>(n - 1) : static_cast<int64_t>(i);
    time = static_cast<int64_t>(static_cast<uint64_t>(times[0]) +
                                static_cast<uint64_t>(steps) * static_cast<uint64_t>(times[1]));
    return true;
  }
};

void submit_batch(nvtxDomainHandle_t handle, const nvtxCounterBatch_t *batch) {
  ThreadLog *log = thread_log();
  if (log == nullptr || batch == nullptr || batch->counters == nullptr || batch->countersSize == 0) {
    return;
  }
  uint16_t domain = domain_of(handle);
  if (is_left_out(domain)) {
    return;
  }
  const Counter *counter = g_counters.find(domain, batch->counterId);
  BatchTimes times{batch->timestamps,
                   batch->timestamps == nullptr ? 0 : batch->timestampsSize / sizeof(int64_t),
                   (batch->flags >> 32 & 3) != 0, (batch->flags >> 32 & 3) == 2};
  size_t stride = counter == nullptr ? 0 : extent_of(domain, counter->schema, 0).size;
  if (stride == 0) {  // the layout is not known: as many samples as there are times
    stride = times.count == 0 || times.pair ? batch->countersSize : batch->countersSize / times.count;
  }
  if (stride == 0) {
    return;
  }
  size_t n = batch->countersSize / stride;
  TimeConversion convert(log->clock(), domain, counter == nullptr ? 0 : counter->time_domain);
  uint64_t odd = 0;
  const Schema *schema =
      counter == nullptr || times.count != 0 ? nullptr : find_schema(domain, counter->schema);
  for (size_t i = 0; i < n; ++i) {
    DeferredFacts facts;
    Label value = value_of(*log, domain, counter, static_cast<const char *>(batch->counters) + i * stride,
                           stride, schema == nullptr ? nullptr : &facts);
    int64_t time = 0;
    uint64_t ours = convert.now();
    if (times.get(i, n, time)) {
      odd += convert(time, ours) ? 0 : 1;
    } else if (facts.has_time[0]) {  // in the samples themselves
      odd += TimeConversion(log->clock(), domain, facts.time_domain[0])(facts.time[0], ours) ? 0 : 1;
    }
    if (log->records(ours)) {
      append(*log, domain, batch->counterId, ours, value);
    } else if (ThreadLog::Busy busy(*log); busy) {
      log->give_back(value.flags, value.payload);
    }
  }
  for (; odd > 0; --odd) {
    log->process()->file().count(kMisplaced);
  }
}

template <bool watchful>
void fill_numbers(Slots slots) {
  slots.set(
      NVTX3EXT_CBID_nvtxCounterSampleInt64, +[](nvtxDomainHandle_t domain, uint64_t counter, int64_t value) {
        sample_number<watchful>(domain, counter, NVTX_PAYLOAD_TYPE_INT64, static_cast<uint64_t>(value));
      });
  slots.set(
      NVTX3EXT_CBID_nvtxCounterSampleFloat64, +[](nvtxDomainHandle_t domain, uint64_t counter, double value) {
        sample_number<watchful>(domain, counter, NVTX_PAYLOAD_TYPE_DOUBLE, bits_of<double>(&value, false));
      });
}

}  // namespace

void fill_counters(Slots slots) {
  slots.set(NVTX3EXT_CBID_nvtxCounterRegister, register_counter);
  (is_watchful() ? fill_numbers<true> : fill_numbers<false>)(slots);
  slots.set(NVTX3EXT_CBID_nvtxCounterSample, sample);
  slots.set(NVTX3EXT_CBID_nvtxCounterSampleNoValue, sample_nothing);
  slots.set(NVTX3EXT_CBID_nvtxCounterBatchSubmit, submit_batch);
}

}  // namespace warplens::agent
