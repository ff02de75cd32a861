// A recording of CUDA in a scratch spool, and records to hand to it: what the tests of the CUDA source share.
#pragma once

#include <string>
#include <vector>

#include "spool/schemas/schema.h"
#include "tests/agent/cupti_batch.h"
#include "tests/wide_reader.h"

namespace warplens::agent {

// As in a process: names outlive recordings.
inline Names g_names;

struct Recording {
  explicit Recording(const CudaSettings &settings = {}, ControlPage *control = nullptr) : process(g_names) {
    CHECK(process.open(scratch.path, "{" + schema_json() + ", " + wide_schema_json() + "}", kClock,
                       control) == 0);
    begin(process, settings);
    now = now_ns(kClock) - 1'000'000'000;
  }
  template <typename Record>
  std::vector<Record> all(RecordType type) {
    return read<Record>(scratch.path, type);
  }
  uint64_t dropped(size_t what) { return process.file().header()->dropped[what].load(); }
  std::string text(uint32_t number) { return std::string(process.text(number)); }

  Scratch scratch;
  ProcessLog process;
  uint64_t now;
};

inline uint32_t g_correlation = 0;

inline CuptiApiActivity call(bool runtime, uint32_t cbid, uint64_t start, uint64_t end,
                             uint32_t correlation = 0, uint32_t tid = 77) {
  return {runtime ? kCuptiRuntime : kCuptiDriver,           cbid, start, end, 4, tid,
          correlation != 0 ? correlation : ++g_correlation, 0};
}

inline CuptiKernelActivity kernel(uint32_t correlation, uint64_t start, uint64_t end,
                                  const char *name = "k") {
  CuptiKernelActivity record{};
  record.kind = kCuptiConcurrentKernel;
  record.start = start;
  record.end = end;
  record.stream = 7;
  record.correlation = correlation;
  record.name = name;
  return record;
}

}  // namespace warplens::agent
