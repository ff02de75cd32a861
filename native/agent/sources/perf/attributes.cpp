// Chooses the settings of perf events.
// All events use CLOCK_MONOTONIC, the spool's clock.
#include "attributes.h"

#include <ctime>

#include "spool/system/subject.h"

namespace warplens::agent {
namespace {

perf_event_attr common() {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;
  attributes.sample_id_all = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.inherit = 1;
  attributes.inherit_thread = 1;  // processes that it begins open their own
  attributes.exclude_hv = 1;
  attributes.comm = attributes.comm_exec = is_outside();  // our own program takes us along
  return attributes;
}

}  // namespace

perf_event_attr sample_attributes(bool cycles, uint32_t hz, Backtrace backtrace, KernelPart kernel) {
  perf_event_attr attributes = common();
  attributes.type = cycles ? PERF_TYPE_HARDWARE : PERF_TYPE_SOFTWARE;
  if (cycles) {
    attributes.config = PERF_COUNT_HW_CPU_CYCLES;
    attributes.freq = 1;
    attributes.sample_freq = hz;
  } else {
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = 1'000'000'000 / hz;
  }
  attributes.exclude_kernel = kernel == KernelPart::none;
  attributes.wakeup_events = 1;
  attributes.mmap = 1;
  attributes.mmap2 = 1;
  attributes.sample_type |= PERF_SAMPLE_IP;
  if (backtrace == Backtrace::none) {
    return attributes;
  }
  if (backtrace == Backtrace::frame_pointer) {
    attributes.sample_type |= PERF_SAMPLE_CALLCHAIN;
  } else {
    attributes.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = kSampledMask;
    attributes.sample_stack_user = kStackBytes;
  }
  if (kernel == KernelPart::frames) {
    attributes.exclude_callchain_user = backtrace != Backtrace::frame_pointer;
    attributes.sample_type |= PERF_SAMPLE_CALLCHAIN;
  } else {
    attributes.exclude_callchain_kernel = 1;  // time in the kernel counts for the call that led there
  }
  return attributes;
}

perf_event_attr switch_attributes() {
  perf_event_attr attributes = common();
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.exclude_kernel = 1;
  attributes.task = 1;
  attributes.comm = attributes.comm_exec = 1;  // names of threads
  attributes.context_switch = 1;
  attributes.watermark = 1;
  attributes.wakeup_watermark = 16 << 10;
  return attributes;
}

}  // namespace warplens::agent
