// Records deferred events.
// A program took the times itself and submits them later, one by one or in batches. Ranges of any
// kind become start/end ranges, since they are independent of what the submitting thread does now.
#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "agent/sources/nvtx/extension/extension.h"
#include "agent/sources/nvtx/extension/schemas.h"
#include "agent/watch.h"
#include "event.h"
#include "time.h"

namespace warplens::agent {
namespace {

enum Time { kAny = 0, kBegin = 1, kEnd = 2, kMark = 3 };

// Halves of ranges that wait for the other half: by domain and the program's id, or a stack for push and pop (id 0).
class Waiting {
 public:
  bool add(uint16_t domain, uint64_t key, nvtxRangeId_t id) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (lock) {
      open_[{domain, key}].push_back(id);
    }
    return lock.owns_lock();
  }
  nvtxRangeId_t take(uint16_t domain, uint64_t key) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    auto found = lock ? open_.find({domain, key}) : open_.end();
    if (!lock || found == open_.end()) {
      return 0;
    }
    nvtxRangeId_t id = found->second.back();
    found->second.pop_back();
    if (found->second.empty()) {
      open_.erase(found);
    }
    return id;
  }

 private:
  std::mutex mutex_;  // never waited for: in a fork child it may be held by a thread that does not exist
  std::map<std::pair<uint16_t, uint64_t>, std::vector<nvtxRangeId_t>> open_;
};
Waiting &waiting() {
  static auto *all = new Waiting;  // never destroyed: programs submit until the very end
  return *all;
}

class Submitted {
 public:
  Submitted(ThreadLog &log, uint16_t domain) : log_(log), domain_(domain), now_(now_ns(log.clock())) {}

  //! Records one event. `kind`: NVTX_PAYLOAD_SCHEMA_FLAG_*, of the first payload that says one.
  void event(const nvtxPayloadData_t *payloads, size_t count, uint64_t kind, const FlexData &flex) {
    facts_ = {};
    facts_.flex = flex;
    Change change;
    bool ends = kind == kNvtxSchemaRangePop || kind == kNvtxSchemaRangeEnd;
    take_payloads(log_, domain_, payloads, count, ends ? kBlobAtEnd : 0, change, &facts_);
    Label label;
    merge(label, change);
    uint64_t begin = 0;
    uint64_t end = 0;
    bool is_range = kind == NVTX_PAYLOAD_SCHEMA_FLAG_RANGE_PUSHPOP ||
                    kind == NVTX_PAYLOAD_SCHEMA_FLAG_RANGE_STARTEND ||
                    (kind == 0 && facts_.has_time[kBegin] && facts_.has_time[kEnd]);
    if (is_range && time(kBegin, begin) && time(kEnd, end)) {
      range(label, begin, std::max(begin, end));
    } else if ((kind == kNvtxSchemaRangePush || kind == kNvtxSchemaRangeStart) && time(kBegin, begin) &&
               open(label, begin, kind == kNvtxSchemaRangeStart)) {
      return;
    } else if (ends && time(kEnd, end) && close(change, end, kind == kNvtxSchemaRangeEnd)) {
      return;
    } else {
      bool timed = (kind == NVTX_PAYLOAD_SCHEMA_FLAG_MARK || kind == 0) && time(kMark, begin);
      if (!timed) {
        begin = time(kAny, begin) ? begin : now_;
        log_.process()->file().count(kUndecoded);
      }
      if (log_.records(begin)) {
        log_.append({RecordType::mark, label.flags, domain_, label.name}, begin, begin, label);
      } else if (ThreadLog::Busy busy(log_); busy) {
        log_.give_back(label.flags, label.payload);
      }
    }
  }

 private:
  // The time for a role, or one without a role.
  bool time(Time which, uint64_t &out) {
    size_t from = facts_.has_time[which] ? which : kAny;
    if (!facts_.has_time[from]) {
      return false;
    }
    TimeConversion convert(log_.clock(), domain_, facts_.time_domain[from]);
    if (!convert(facts_.time[from], out)) {
      log_.process()->file().count(kMisplaced);
    }
    return true;
  }

  void range(const Label &label, uint64_t begin, uint64_t end) {
    OpenSlot slot{};
    slot.event.head = {RecordType::start_end, label.flags, domain_, label.name};
    slot.event.start = begin;
    copy_details(&slot.event, label);
    slot.thread = log_.index();
    ThreadLog::Busy busy(log_);
    uint8_t edge = 0;
    if (!busy) {
      log_.process()->file().count(kInSignal);
    } else if (log_.keeps(begin, end, edge, true)) {
      log_.append_start_end(slot, end, edge);
    } else {
      log_.give_back(label.flags, label.payload);
    }
  }

  bool open(const Label &label, uint64_t begin, bool by_id) {
    uint64_t id = log_.process()->start_range(log_, domain_, label, 0, 0, begin);
    return guarded(false, [&] {
      // Push and pop without an id: the last one that is open. (0 is no range id of NVTX.)
      return id != 0 && waiting().add(domain_, by_id ? facts_.range_id : 0, id);
    });
  }

  bool close(const Change &change, uint64_t end, bool by_id) {
    uint64_t id = waiting().take(domain_, by_id ? facts_.range_id : 0);
    return id != 0 && log_.process()->end_range(log_, id, end, &change);
  }

  ThreadLog &log_;
  uint16_t domain_;
  uint64_t now_;
  DeferredFacts facts_;
};

uint64_t kind_of(uint16_t domain, uint64_t schema) {
  const Schema *known = find_schema(domain, schema);
  uint64_t kind = known == nullptr ? 0 : known->flags & kNvtxSchemaEventMask;
  return kind == NVTX_PAYLOAD_SCHEMA_FLAG_COUNTER_GROUP ? 0 : kind;
}

void submit(nvtxDomainHandle_t handle, const nvtxPayloadData_t *payloads, size_t count) {
  ThreadLog *log = thread_log();
  if (log == nullptr || payloads == nullptr || count == 0 || is_left_out(domain_of(handle))) {
    return;
  }
  uint16_t domain = domain_of(handle);
  uint64_t kind = 0;
  for (size_t i = 0; i < count && kind == 0; ++i) {
    kind = kind_of(domain, payloads[i].schemaId);
  }
  guarded([&] { Submitted(*log, domain).event(payloads, count, kind, {}); });
}

// How long the next event of a dynamic schema is; 0: nobody knows.
size_t next_size(ThreadLog &log, uint16_t domain, const Schema &schema, const char *at, size_t left) {
  ThreadLog::Busy busy(log);
  for (size_t window = 4096; busy; window = BlobLog::kLargest) {
    nvtxPayloadData_t payload{schema.id, std::min(left, window), at};
    Change ignored;
    DeferredFacts no_facts;
    size_t size = guarded(size_t{0}, [&] {
      return copy_payload(log, domain, schema, payload, &payload, 1, ignored, &no_facts).fixed;
    });
    if (size < payload.size || payload.size == left || window == BlobLog::kLargest) {
      return std::min(size, left);
    }
  }
  return 0;
}

void submit_batch(nvtxDomainHandle_t handle, const nvtxEventBatch_t *batch) {
  ThreadLog *log = thread_log();
  if (log == nullptr || batch == nullptr || batch->events == nullptr || is_left_out(domain_of(handle))) {
    return;
  }
  uint16_t domain = domain_of(handle);
  const Schema *schema = find_schema(domain, batch->eventSchemaId);
  uint64_t kind = kind_of(domain, batch->eventSchemaId);
  FlexData flex{static_cast<const char *>(batch->flexData), batch->flexDataOffset, batch->flexDataSize};
  Submitted events(*log, domain);
  const char *at = static_cast<const char *>(batch->events);
  for (size_t left = batch->size; left != 0;) {
    size_t size = schema == nullptr ? left : schema->size;
    if (size == 0) {
      size = next_size(*log, domain, *schema, at, left);
    }
    if (size == 0 || size > left) {  // not a whole event: kept as it is
      size = left;
    }
    nvtxPayloadData_t payload{batch->eventSchemaId, size, at};
    guarded([&] { events.event(&payload, 1, kind, flex); });
    at += size;
    left -= size;
  }
}

}  // namespace

void fill_deferred(Slots slots) {
  slots.set(NVTX3EXT_CBID_nvtxEventSubmit, submit);
  slots.set(NVTX3EXT_CBID_nvtxEventBatchSubmit, submit_batch);
}

}  // namespace warplens::agent
