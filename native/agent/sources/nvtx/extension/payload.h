// Payloads: copied inside the call, with all they point to, and what they say about their event.
#pragma once

#include <string>

#include "agent/source.h"
#include "drivers/nvtx.h"

namespace warplens::agent {

struct Schema;

//! What a payload of a deferred event says about it besides its message, colour and category.
struct FlexData {
  const char *base = nullptr;  // offsets count from here
  size_t begin = 0;            // what may be read: from here …
  size_t size = 0;             // … so much
};
struct DeferredFacts {
  FlexData flex;  // given: where the offsets in a batch's events lead
  static constexpr int kTimes = 4;
  int64_t time[kTimes] = {};  // by role: any, begin, end, mark
  uint64_t time_domain[kTimes] = {};
  bool has_time[kTimes] = {};
  uint64_t range_id = 0;
};

//! The bytes of a payload with what it points to behind them, and pointers as offsets. Adds what it says about the event to
//! `change`, and to `facts` where wanted; `cut`: something could not be read. The caller holds Busy. May throw.
struct CopiedPayload {
  std::string bytes;
  bool cut = false;
  size_t fixed = 0;  // bytes of the payload itself, as the schema says; for dynamic schemas its real length
};
CopiedPayload copy_payload(ThreadLog &log, uint16_t domain, const Schema &schema,
                           const nvtxPayloadData_t &payload, const nvtxPayloadData_t *all, size_t count,
                           Change &change, DeferredFacts *facts);

//! Writes the payloads of one event, and puts what they say into `change`. `flags`: kBlobAtEnd or 0.
void take_payloads(ThreadLog &log, uint16_t domain, const nvtxPayloadData_t *payloads, size_t count,
                   uint32_t flags, Change &change, DeferredFacts *facts = nullptr);

//! Puts a change into the label of an event that is about to begin.
void merge(Label &label, const Change &change);

//! The length in bytes of a payload, where the program leaves that to us (SIZE_MAX) too; 0: there is nothing to copy.
size_t payload_size(uint16_t domain, const nvtxPayloadData_t &payload);

}  // namespace warplens::agent
