// The fields of the records of cpu_records.h, for readers.
#include "spool/wide/wide_fields.h"
#include "warplens/cpu_records.h"

namespace warplens {
namespace {

#define R CpuFrameRecord
constexpr WideField kFrame[] = {FIELD(R, node), FIELD(R, parent), FIELD(R, address),    FIELD(R, offset),
                                FIELD(R, file), FIELD(R, line),   FIELD(R, first_line), FIELD(R, module)};
#undef R
#define R CpuModuleRecord
constexpr WideField kModule[] = {FIELD(R, time), FIELD(R, begin),  FIELD(R, end),
                                 FIELD(R, bias), FIELD(R, module), FIELD(R, build_id)};
#undef R
#define R CpuSampleRecord
constexpr WideField kSample[] = {FIELD(R, start), FIELD(R, end), FIELD(R, tid),     FIELD(R, stack),
                                 FIELD(R, count), FIELD(R, cpu), FIELD(R, interval)};
#undef R
#define R CpuStateRecord
constexpr WideField kState[] = {FIELD(R, start), FIELD(R, end), FIELD(R, tid), FIELD(R, cpu)};
#undef R
#define R OsCallRecord
constexpr WideField kOsCall[] = {FIELD(R, start), FIELD(R, end), FIELD(R, result), FIELD(R, object),
                                 FIELD(R, tid),   FIELD(R, fd),  FIELD(R, text),   FIELD(R, stack)};
#undef R
#define R GilRecord
constexpr WideField kGil[] = {FIELD(R, start), FIELD(R, end),   FIELD(R, held_ns), FIELD(R, waited_ns),
                              FIELD(R, tid),   FIELD(R, holds), FIELD(R, waits),   FIELD(R, interpreter)};
#undef R
#define R PythonSpanRecord
constexpr WideField kSpan[] = {FIELD(R, start), FIELD(R, end),  FIELD(R, value), FIELD(R, value2),
                               FIELD(R, tid),   FIELD(R, file), FIELD(R, line),  FIELD(R, color)};
#undef R
#define R CpuNoticeRecord
constexpr WideField kNotice[] = {FIELD(R, start), FIELD(R, value), FIELD(R, notice)};
#undef R

constexpr WideRecord kRecords[] = {
    {"cpu_frame", RecordType::cpu_frame, sizeof(CpuFrameRecord), kFrame},
    {"cpu_module", RecordType::cpu_module, sizeof(CpuModuleRecord), kModule},
    {"cpu_sample", RecordType::cpu_sample, sizeof(CpuSampleRecord), kSample},
    {"cpu_state", RecordType::cpu_state, sizeof(CpuStateRecord), kState},
    {"os_call", RecordType::os_call, sizeof(OsCallRecord), kOsCall},
    {"gil", RecordType::gil, sizeof(GilRecord), kGil},
    {"python_span", RecordType::python_span, sizeof(PythonSpanRecord), kSpan},
    {"cpu_notice", RecordType::cpu_notice, sizeof(CpuNoticeRecord), kNotice},
};

}  // namespace

std::span<const WideRecord> cpu_wide_records() {
  return kRecords;
}

}  // namespace warplens
