// The fields of the records of intrakernel_records.h, for readers.
#include "spool/wide/wide_fields.h"
#include "warplens/intrakernel_records.h"

namespace warplens {
namespace {

#define R IntrakernelLaunchRecord
constexpr WideField kLaunch[] = {FIELD(R, start),  FIELD(R, address),     FIELD(R, stream),
                                 FIELD(R, launch), FIELD(R, buffer),      FIELD(R, generation),
                                 FIELD(R, tid),    FIELD(R, buffer_name), FIELD(R, device)};
#undef R
#define R IntrakernelReadRecord
constexpr WideField kRead[] = {FIELD(R, asked),  FIELD(R, start),   FIELD(R, end),      FIELD(R, blob),
                               FIELD(R, bytes),  FIELD(R, value),   FIELD(R, first_ns), FIELD(R, last_ns),
                               FIELD(R, launch), FIELD(R, tid),     FIELD(R, tags),     FIELD(R, units),
                               FIELD(R, room),   FIELD(R, claimed), FIELD(R, slots),    FIELD(R, blocks)};
#undef R

constexpr WideRecord kRecords[] = {
    {"intrakernel_launch", RecordType::intrakernel_launch, sizeof(IntrakernelLaunchRecord), kLaunch},
    {"intrakernel_read", RecordType::intrakernel_read, sizeof(IntrakernelReadRecord), kRead},
};

}  // namespace

std::span<const WideRecord> intrakernel_wide_records() {
  return kRecords;
}

}  // namespace warplens
