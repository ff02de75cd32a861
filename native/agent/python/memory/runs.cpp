// Writes samples as runs.
// Long runs are written in parts, since a process may end at any time.
#include "runs.h"

namespace warplens::agent {
namespace {

constexpr uint64_t kLongest = 200'000'000;

}  // namespace

void SampleRun::add(ProcessLog &log, uint32_t tid, const PythonSample &sample, uint64_t time,
                    uint64_t interval) {
  if (count_ != 0 && (!(sample == sample_) || interval != interval_ || time - start_ > kLongest)) {
    end(log, tid);
  }
  if (sample.stack == 0) {
    return;
  }
  if (count_ == 0) {
    sample_ = sample;
    start_ = time;
    interval_ = interval;
  }
  last_ = time;
  ++count_;
}

void SampleRun::end(ProcessLog &log, uint32_t tid) {
  if (count_ == 0) {
    return;
  }
  CpuSampleRecord record{};
  record.head = {RecordType::cpu_sample, sample_.flags, static_cast<uint16_t>(SampleKind::python),
                 sample_.task};
  record.start = start_;
  record.end = last_;
  record.tid = tid;
  record.stack = sample_.stack;
  record.count = count_;
  record.cpu = sample_.opcode;
  record.interval = interval_;
  WideLog::Writer(log.wide()).append(record, start_);
  count_ = 0;
}

}  // namespace warplens::agent
