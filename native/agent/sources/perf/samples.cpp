// Converts the kernel's sample records.
// The fields of PERF_RECORD_SAMPLE are those that sample_attributes() chose.
#include "samples.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>

#include "agent/hooks/cpu.h"
#include "agent/stacks.h"
#include "attributes.h"
#include "ring.h"
#include "spool/system/subject.h"

namespace warplens::agent {
namespace {

constexpr uint64_t kSoon =
    1'000'000;  // ns: a sampled thread stands still so long, or it has not been taken far

#if defined(__aarch64__)
// In the order of the kernel's numbers, which are DWARF's; its 32 is the program counter, ours too.
constexpr uint8_t kColumns[kSampledRegisters] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
#else
// ax bx cx dx si di bp sp ip, r8 to r15, as DWARF numbers them.
constexpr uint8_t kColumns[kSampledRegisters] = {0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15};
#endif

}  // namespace

void PerfSamples::add(const perf_event_header &record, ProcessLog *log, bool prompt) {
  switch (record.type) {
    case PERF_RECORD_SAMPLE:
      if (log != nullptr && !has_subject_left()) {
        sample(record, *log, prompt);
      }
      break;
    case PERF_RECORD_MMAP2:
      mapped(record);
      break;
    case PERF_RECORD_COMM:
      if ((record.misc & PERF_RECORD_MISC_COMM_EXEC) != 0 &&
          PerfFields(record).take<uint32_t>() == static_cast<uint32_t>(subject())) {
        note_subject_left();
      }
      break;
    case PERF_RECORD_LOST: {
      PerfFields fields(record);
      fields.take<uint64_t>();
      lost_ += fields.take<uint64_t>();
      break;
    }
    default:
      break;
  }
}

void PerfSamples::mapped(const perf_event_header &record) {
  PerfFields fields(record);
  auto pid = fields.take<uint32_t>();
  fields.take<uint32_t>();
  auto begin = fields.take<uint64_t>();
  auto size = fields.take<uint64_t>();
  auto offset = fields.take<uint64_t>();
  auto major = fields.take<uint32_t>();
  auto minor = fields.take<uint32_t>();
  auto inode = fields.take<uint64_t>();
  fields.take<uint64_t>();  // generation of the inode
  fields.take<uint64_t>();  // protection and flags
  std::string_view path(fields.at(), strnlen(fields.at(), fields.left()));
  if (pid == static_cast<uint32_t>(subject())) {
    if (is_outside() && path.ends_with("/libwarplens_agent.so")) {
      note_subject_left();  // from now on it records itself
    }
    modules().add(begin, begin + size, offset, makedev(major, minor), inode, path);
  }
}

void PerfSamples::sample(const perf_event_header &record, ProcessLog &log, bool prompt) {
  PerfFields fields(record);
  Sample sample{};
  sample.ip = fields.take<uint64_t>();
  sample.pid = fields.take<uint32_t>();
  sample.tid = fields.take<uint32_t>();
  sample.time = fields.take<uint64_t>();
  sample.cpu = fields.take<uint32_t>();
  fields.take<uint32_t>();
  if (is_own_thread(sample.tid)) {
    return;
  }
  const bool unwinds = form_.backtrace == Backtrace::automatic || form_.backtrace == Backtrace::dwarf;
  if (form_.backtrace == Backtrace::frame_pointer || (unwinds && form_.has_kernel)) {
    sample.chain_length = std::min<uint64_t>(fields.take<uint64_t>(), fields.left() / sizeof(uint64_t));
    sample.chain = fields.at();
    fields.skip(sample.chain_length * sizeof(uint64_t));
  }
  if (unwinds && fields.take<uint64_t>() == PERF_SAMPLE_REGS_ABI_64) {
    sample.has_registers = true;
    for (uint8_t column : kColumns) {
      sample.registers.value[column] = fields.take<uint64_t>();
    }
    auto size = fields.take<uint64_t>();
    const auto *bytes = reinterpret_cast<const uint8_t *>(fields.at());
    fields.skip(size);
    uint64_t used = size != 0 ? std::min(fields.take<uint64_t>(), size) : 0;
    sample.stack = {sample.registers.sp(), bytes, used, prompt};
  }

  Reached reached = Reached::end;
  size_t count = find_frames(sample, &reached);
  bool late = false, cut = false;
  uint32_t stack = write(log, sample, count, reached, &late);
  stack = write_kernel(log, stack, find_kernel(sample, &cut));
  CpuSampleRecord out{};
  auto flags = static_cast<uint8_t>(kSampleOnCpu | (reached == Reached::end && !cut ? 0 : kSampleCut) |
                                    (late ? kSampleLate : 0));
  out.head = {RecordType::cpu_sample, flags, static_cast<uint16_t>(SampleKind::native), 0};
  out.start = out.end = sample.time;
  out.tid = sample.tid;
  out.stack = stack;
  out.count = 1;
  out.cpu = sample.cpu;
  out.interval = form_.interval;
  WideLog::Writer(log.wide()).append(out, out.start);
}

size_t PerfSamples::find_frames(const Sample &sample, Reached *reached) {
  modules().view(&mappings_);
  size_t count = 0;
  for (int attempt = 0;; ++attempt) {
    if (sample.has_registers) {
      count = unwind(mappings_, row_cache(), sample.stack, sample.registers, frames_.data(), frames_.size(),
                     reached);
    } else {
      count = copy_chain(sample);
    }
    if (count == 0) {
      return 0;  // in the kernel, and not on the way from the program
    }
    bool known = *reached != Reached::lost && frames_[count - 1].mapping != nullptr;
    if (known || attempt != 0 || !modules().refresh(sample.time)) {
      return count;
    }
    modules().view(&mappings_);
  }
}

// What the kernel found by frame pointers; without them, the address alone.
size_t PerfSamples::copy_chain(const Sample &sample) {
  size_t count = 0;
  bool user = false;
  for (uint64_t i = 0; i < sample.chain_length && count < frames_.size(); ++i) {
    uint64_t address = 0;
    std::memcpy(&address, sample.chain + i * sizeof(address), sizeof(address));
    if (address >= static_cast<uint64_t>(PERF_CONTEXT_MAX)) {
      user = address == static_cast<uint64_t>(PERF_CONTEXT_USER);
    } else if (user) {
      bool is_return = count != 0;
      frames_[count++] = {address, mappings_.find(address - is_return), 0, is_return};
    }
  }
  if (count == 0 && is_kernel_address(sample.ip)) {
    if (!form_.has_kernel) {
      frames_[count++] = {0, nullptr, 0, false};
    }
  } else if (count == 0) {
    frames_[count++] = {sample.ip, mappings_.find(sample.ip), 0, false};
  }
  return count;
}

size_t PerfSamples::find_kernel(const Sample &sample, bool *cut) {
  if (!form_.has_kernel) {
    return 0;
  }
  size_t count = kernel_frames(sample.chain, sample.chain_length, kernel_, cut);
  if (count == 0 && is_kernel_address(sample.ip)) {
    kernel_[count++] = sample.ip;
  }
  return count;
}

uint32_t PerfSamples::write_kernel(ProcessLog &log, uint32_t stack, size_t count) {
  while (count-- > 0) {
    Frame frame;
    frame.kind = FrameKind::kernel;
    frame.flags = count != 0 ? kReturnAddress : 0;
    frame.address = kernel_[count];
    uint32_t node = stack_node(log, stack, frame);
    stack = node != 0 ? node : stack;
  }
  return stack;
}

// Where the evaluation loop is; looked for again when something was mapped.
bool PerfSamples::find_eval() {
  const PythonRuntime *runtime = g_sampled_python.load(std::memory_order_acquire);
  if (runtime == nullptr || eval_.end != 0 || eval_version_ == mappings_.version) {
    return eval_.end != 0;
  }
  eval_version_ = mappings_.version;
  return find_eval_code(*runtime, mappings_, &eval_);
}

// Threads without a frame of the evaluation loop run no Python, if we saw their whole stack.
bool PerfSamples::read_python(const Sample &sample, size_t count, bool whole) {
  auto evaluates = [&](const NativeFrame &frame) { return eval_.holds(frame); };
  if (!find_eval() || (whole && std::none_of(frames_.data(), frames_.data() + count, evaluates))) {
    return false;
  }
  if (python_.reader == nullptr) {
    python_.reader = std::make_unique<PythonReader>(*g_sampled_python.load());
  }
  return python_.reader->read(sample.tid, python_stack_);
}

uint32_t PerfSamples::write(ProcessLog &log, const Sample &sample, size_t count, Reached reached,
                            bool *late) {
  const bool whole = reached == Reached::end && sample.has_registers;
  std::lock_guard lock(python_.mutex);
  const bool mixed = read_python(sample, count, whole);
  const bool soon = sample.stack.live && now_ns(log.clock()) - sample.time < kSoon;
  bool fits = false;
  if (!mixed) {
    python_stack_.frames.clear();
    python_stack_.is_cut = false;
  }
  uint32_t stack = write_mixed(log, frames_.data(), count, whole, eval_, python_stack_,
                               mixed ? &python_.reader->codes() : nullptr, ~size_t{0}, &fits);
  *late = mixed && (!soon || !fits);
  return stack;
}

}  // namespace warplens::agent
