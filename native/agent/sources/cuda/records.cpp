// Converts CUPTI's records to those of the spool.
// Fields that all versions share are read directly, newer ones only if this version has them.
#include <cstring>

#include "agent/hooks/cupti/calls.h"
#include "cuda.h"
#include "windows.h"

namespace warplens::agent {
namespace {

constexpr uint32_t kNone = 0xffffffff;
constexpr uint64_t kEarlier =
    60'000'000'000;  // work that a recording found running began so long before it, at most
constexpr uint64_t kLater =
    10'000'000'000;  // times of GPUs are worked out, and can lie ahead a little; but not so much
constexpr uint64_t kInexact = 1'000'000;

RecordType type_of(CuptiKind kind) {
  switch (kind) {
    case kCuptiDriver:
    case kCuptiRuntime:
      return RecordType::cuda_api;
    case kCuptiKernel:
    case kCuptiConcurrentKernel:
      return RecordType::cuda_kernel;
    case kCuptiMemcpy:
    case kCuptiMemcpyPeer:
      return RecordType::cuda_memcpy;
    case kCuptiMemset:
      return RecordType::cuda_memset;
    case kCuptiSynchronization:
      return RecordType::cuda_sync;
    case kCuptiCudaEvent:
      return RecordType::cuda_event;
    case kCuptiGraph:
      return RecordType::cuda_graph;
    case kCuptiMemory:
    case kCuptiMemoryPool:
      return RecordType::cuda_memory;
    case kCuptiUmCounter:
      return RecordType::cuda_um;
    case kCuptiOverhead:
    case kCuptiJit:
      return RecordType::cuda_overhead;
    case kCuptiDevice:
      return RecordType::cuda_device;
    case kCuptiContext:
      return RecordType::cuda_context;
    case kCuptiStream:
      return RecordType::cuda_stream;
    case kCuptiExternal:
      return RecordType::cuda_external;
    default:
      return RecordType::none;
  }
}

// One batch on its way into the log. The caller holds the state.
class Decoding {
 public:
  Decoding(const CuptiBatch &batch, CudaState &state)
      : batch_(batch),
        state_(state),
        log_(batch.log),
        writer_(batch.log.wide()),
        windows_(batch.log.control()),
        now_(now_ns(batch.log.clock())),
        earliest_(state.begin_ns > kEarlier ? state.begin_ns - kEarlier : 1),
        latest_(now_ + kLater) {}

  // Calls first: the work that one has launched stands before it, and is judged by it.
  void run() {
    CuptiActivity *record = nullptr;
    while (next_record(batch_, &record)) {
      if (record->kind == kCuptiRuntime) {
        runtime_call(as<CuptiApiActivity>(record));
      } else if (record->kind == kCuptiDriver) {
        driver_call(as<CuptiApiActivity>(record));
      }
    }
    for (uint32_t i = 0; i < nested_count_; ++i) {
      write(nested_[i], false);
    }
    record = nullptr;
    while (next_record(batch_, &record)) {
      decode(record);
    }
  }

 private:
  static constexpr uint32_t kNested = 16;
  static constexpr uint32_t kOuter = 4;

  template <typename Record>
  static const Record &as(const CuptiActivity *record) {
    return *reinterpret_cast<const Record *>(record);
  }

  void decode(const CuptiActivity *record) {
    switch (record->kind) {
      case kCuptiRuntime:
      case kCuptiDriver:
        return;
      case kCuptiKernel:
      case kCuptiConcurrentKernel:
        return kernel(as<CuptiKernelActivity>(record));
      case kCuptiMemcpy:
        return memcpy(as<CuptiMemcpyActivity>(record));
      case kCuptiMemcpyPeer:
        return peer_copy(as<CuptiPeerCopyActivity>(record));
      case kCuptiMemset:
        return memset(as<CuptiMemsetActivity>(record));
      case kCuptiGraph:
        return graph(as<CuptiGraphActivity>(record));
      case kCuptiSynchronization:
        return synchronization(as<CuptiSynchronizationActivity>(record));
      case kCuptiCudaEvent:
        return cuda_event(as<CuptiCudaEventActivity>(record));
      case kCuptiMemory:
        return memory(as<CuptiMemoryActivity>(record));
      case kCuptiMemoryPool:
        return memory_pool(as<CuptiMemoryPoolActivity>(record));
      case kCuptiUmCounter:
        return unified_memory(as<CuptiUmActivity>(record));
      case kCuptiOverhead:
        return overhead(as<CuptiOverheadActivity>(record));
      case kCuptiJit:
        return jit(as<CuptiJitActivity>(record));
      case kCuptiExternal:
        return external(as<CuptiExternalActivity>(record));
      case kCuptiDevice:
        return device(as<CuptiDeviceActivity>(record));
      case kCuptiContext:
        return context(as<CuptiContextActivity>(record));
      case kCuptiStream:
        return stream(as<CuptiStreamActivity>(record));
      default:
        log_.file().count(kCuptiUnknown);
    }
  }

  bool since(uint32_t version) const { return batch_.cupti.version >= version; }

  // Driver calls made by runtime calls say nothing new and would count twice. The inner one returns
  // first, so it waits for the outer one, which follows in the same batch as a rule; CUPTI promises no order, though.
  void driver_call(const CuptiApiActivity &from) {
    if (asks_for_all()) {
      return write(from, false);
    }
    if (!is_recorded_call(kCuptiDriverApi, from.cbid)) {
      return;
    }
    for (const CuptiApiActivity &outer : outer_) {
      if (is_within(from, outer)) {
        return;
      }
    }
    if (nested_count_ == kNested) {
      write(nested_[0], false);
      std::memmove(nested_, nested_ + 1, sizeof(nested_) - sizeof(nested_[0]));
      --nested_count_;
    }
    nested_[nested_count_++] = from;
  }

  void runtime_call(const CuptiApiActivity &from) {
    bool recorded = asks_for_all() || is_recorded_call(kCuptiRuntimeApi, from.cbid);
    if (nested_count_ != 0 && recorded) {
      uint32_t left = 0;
      for (uint32_t i = 0; i < nested_count_; ++i) {
        if (!is_within(nested_[i], from)) {
          nested_[left++] = nested_[i];
        }
      }
      nested_count_ = left;
    }
    if (recorded) {
      outer_[outer_count_++ % kOuter] = from;
      write(from, true);
    }
  }

  static bool is_within(const CuptiApiActivity &inner, const CuptiApiActivity &outer) {
    return inner.tid == outer.tid && inner.start >= outer.start && inner.end <= outer.end;
  }

  bool asks_for_all() const { return (state_.settings.flags & kCudaAllApis) != 0; }

  void write(const CuptiApiActivity &from, bool runtime) {
    uint64_t start = from.start;
    uint64_t end = from.end;
    if (!usable(start, end)) {
      return;
    }
    bool wanted = windows_.keeps(start, end);
    if (!state_.seen.add_call(runtime, from.correlation, start, !wanted)) {
      return log_.file().count(kCuptiRepeated);
    }
    if (!wanted) {
      return;
    }
    state_.threads.see(log_, writer_, from.tid, start);
    auto *to = writer_.place<CudaApiRecord>(RecordType::cuda_api);
    if (to == nullptr) {
      return;
    }
    to->start = start;
    to->end = end;
    to->tid = from.tid;
    to->correlation = from.correlation;
    to->result = static_cast<int32_t>(from.result);
    to->cbid = from.cbid;
    uint32_t name =
        state_.names.function(log_, batch_.cupti, runtime ? kCuptiRuntimeApi : kCuptiDriverApi, from.cbid);
    writer_.commit(to, {RecordType::cuda_api, 0, static_cast<uint16_t>(runtime ? 0 : 1), name}, start);
  }

  void kernel(const CuptiKernelActivity &from) {
    uint64_t start = from.start;
    uint64_t end = from.end;
    auto *to = work<CudaKernelRecord>(RecordType::cuda_kernel, from, start, end, from.graph_node);
    if (to == nullptr) {
      return;
    }
    to->grid_x = from.grid[0];
    to->grid_y = from.grid[1];
    to->grid_z = from.grid[2];
    to->block_x = from.block[0];
    to->block_y = from.block[1];
    to->block_z = from.block[2];
    to->static_shared = from.static_shared;
    to->dynamic_shared = from.dynamic_shared;
    to->local_per_thread = from.local_per_thread;
    to->shared_executed = from.shared_executed;
    to->local_total = from.local_total;
    to->graph_node = from.graph_node;
    to->grid_id = from.grid_id;
    to->graph = from.graph;
    to->registers = from.registers;
    to->launch_type = from.launch_type;
    to->cache_config = from.cache_config;
    to->cluster_x = from.cluster[0];
    to->cluster_y = from.cluster[1];
    to->cluster_z = from.cluster[2];
    to->channel = from.channel;
    writer_.commit(to, {RecordType::cuda_kernel, 0, 0, state_.names.kernel(log_, from.name)}, start);
  }

  void memcpy(const CuptiMemcpyActivity &from) {
    uint64_t start = from.start;
    uint64_t end = from.end;
    auto *to = work<CudaMemcpyRecord>(RecordType::cuda_memcpy, from, start, end, from.graph_node);
    if (to == nullptr) {
      return;
    }
    to->bytes = from.bytes;
    to->graph_node = from.graph_node;
    to->graph = from.graph;
    to->copies = since(kCuptiSinceCopies) ? static_cast<uint32_t>(from.copies) : 0;
    set_copy(*to, from);
    to->source_device = kNone;
    to->destination_device = kNone;
    writer_.commit(to, {RecordType::cuda_memcpy, 0, 0, 0}, start);
  }

  void peer_copy(const CuptiPeerCopyActivity &from) {
    uint64_t start = from.start;
    uint64_t end = from.end;
    auto *to = work<CudaMemcpyRecord>(RecordType::cuda_memcpy, from, start, end, from.graph_node);
    if (to == nullptr) {
      return;
    }
    to->bytes = from.bytes;
    to->graph_node = from.graph_node;
    to->graph = from.graph;
    to->copies = 0;
    set_copy(*to, from);
    to->source_device = from.source_device;
    to->destination_device = from.destination_device;
    writer_.commit(to, {RecordType::cuda_memcpy, 0, 0, 0}, start);
  }

  template <typename From>
  static void set_copy(CudaMemcpyRecord &to, const From &from) {
    to.copy_kind = from.copy_kind;
    to.source_kind = from.source_kind;
    to.destination_kind = from.destination_kind;
    to.flags = from.flags & 1;
    to.reserved = 0;
  }

  void memset(const CuptiMemsetActivity &from) {
    uint64_t start = from.start;
    uint64_t end = from.end;
    auto *to = work<CudaMemsetRecord>(RecordType::cuda_memset, from, start, end, from.graph_node);
    if (to == nullptr) {
      return;
    }
    to->bytes = from.bytes;
    to->graph_node = from.graph_node;
    to->graph = from.graph;
    to->value = from.value;
    to->memory_kind = from.memory_kind;
    to->flags = from.flags & 1;
    writer_.commit(to, {RecordType::cuda_memset, 0, 0, 0}, start);
  }

  void graph(const CuptiGraphActivity &from) {
    uint64_t start = from.start;
    uint64_t end = from.end;
    auto *to = work<CudaGraphRecord>(RecordType::cuda_graph, from, start, end, from.graph);
    if (to == nullptr) {
      return;
    }
    // CUPTI numbers the executable graph: cuptiGetGraphExecId gives the same.
    to->graph = from.graph;
    to->graph_exec = 0;
    writer_.commit(to, {RecordType::cuda_graph, 0, 0, 0}, start);
  }

  // Place for GPU work that is wanted and has usable times; those and whose it is are filled in.
  template <typename To, typename From>
  To *work(RecordType type, const From &from, uint64_t &start, uint64_t &end, uint64_t more) {
    if (!usable(start, end) || !windows_.may_keep_work(start)) {
      return nullptr;
    }
    if (end > now_ + kInexact) [[unlikely]] {
      say_clock_is_off(static_cast<int64_t>(end - now_));
    }
    const CudaSeen::Call *call = state_.seen.call_of(from.correlation);
    if (call != nullptr) {
      if (call->outside) {
        return nullptr;
      }
      if (start + kInexact < call->start) [[unlikely]] {
        say_clock_is_off(static_cast<int64_t>(start - call->start));
      }
    }
    if (!state_.seen.add_work(from.kind, from.correlation, from.stream, start, end, more)) [[unlikely]] {
      log_.file().count(kCuptiRepeated);
      return nullptr;
    }
    auto *to = writer_.place<To>(type);
    if (to != nullptr) {
      to->start = start;
      to->end = end;
      to->device = from.device;
      to->context = from.context;
      to->stream = from.stream;
      to->correlation = from.correlation;
    }
    return to;
  }

  void synchronization(const CuptiSynchronizationActivity &from) {
    uint64_t start = from.start;
    uint64_t end = from.end;
    if (!usable(start, end) || !windows_.keeps(start, end)) {
      return;
    }
    if (!state_.seen.add_work(from.kind, from.correlation, from.stream, start, end, from.event)) {
      return log_.file().count(kCuptiRepeated);
    }
    auto *to = writer_.place<CudaSyncRecord>(RecordType::cuda_sync);
    if (to == nullptr) {
      return;
    }
    to->start = start;
    to->end = end;
    to->kind = from.type;
    to->correlation = from.correlation;
    to->context = from.context;
    to->stream = from.stream;
    to->event = from.event;
    to->result = since(kCuptiSinceEventSync) ? static_cast<int32_t>(from.result) : 0;
    to->event_sync = since(kCuptiSinceEventSync) ? from.event_sync : 0;
    writer_.commit(to, {RecordType::cuda_sync, 0, 0, 0}, start);
  }

  void cuda_event(const CuptiCudaEventActivity &from) {
    uint64_t start = since(kCuptiSinceEventSync) ? from.device_time : 0;
    uint64_t end = start;
    if (is_outside(from.correlation) || (start != 0 && !usable(start, end))) {
      return;
    }
    auto *to = writer_.place<CudaEventRecord>(RecordType::cuda_event);
    if (to == nullptr) {
      return;
    }
    to->start = start;
    to->device = since(kCuptiSinceEventSync) ? from.device : kNone;
    to->context = from.context;
    to->stream = from.stream;
    to->event = from.event;
    to->correlation = from.correlation;
    to->reserved = 0;
    to->event_sync = since(kCuptiSinceEventSync) ? from.event_sync : 0;
    writer_.commit(to, {RecordType::cuda_event, 0, 0, 0}, start != 0 ? start : now_);
  }

  // All of it, windows or not: how much there is follows from all that came and went.
  void memory(const CuptiMemoryActivity &from) {
    uint64_t time = from.time;
    uint64_t end = time;
    auto *to = usable(time, end) ? writer_.place<CudaMemoryRecord>(RecordType::cuda_memory) : nullptr;
    if (to == nullptr) {
      return;
    }
    const char *source = since(kCuptiSinceAllocationSource) ? from.source : nullptr;
    const char *name = from.name != nullptr && *from.name != '\0' ? from.name : source;
    to->start = time;
    to->address = from.address;
    to->bytes = from.bytes;
    to->pc = from.pc;
    to->pool = from.pool_kind != 0 ? from.pool : 0;
    to->pool_size = from.pool_kind == kLocalPool ? from.pool_size : 0;
    to->pool_used = from.pool_kind == kLocalPool ? from.pool_used : 0;
    to->pool_threshold = from.pool_kind != 0 ? from.pool_threshold : 0;
    to->device = from.device;
    to->context = from.context;
    to->stream = from.stream;
    to->correlation = from.correlation;
    to->operation = static_cast<CudaMemoryOperation>(from.operation);
    to->memory_kind = from.memory_kind;
    to->pool_kind = from.pool_kind;
    to->reserved = 0;
    writer_.commit(to, {RecordType::cuda_memory, 0, 0, state_.names.kernel(log_, name)}, time);
  }

  void memory_pool(const CuptiMemoryPoolActivity &from) {
    uint64_t time = from.time;
    uint64_t end = time;
    auto *to = usable(time, end) ? writer_.place<CudaMemoryRecord>(RecordType::cuda_memory) : nullptr;
    if (to == nullptr) {
      return;
    }
    *to = {};
    to->start = time;
    to->pool = to->address = from.address;
    to->bytes = from.bytes_to_keep;
    to->pool_size = from.size;
    to->pool_used = from.used;
    to->pool_threshold = from.threshold;
    to->device = from.device;
    to->context = kNone;
    to->stream = kNone;
    to->correlation = from.correlation;
    to->operation = static_cast<CudaMemoryOperation>(
        from.operation + static_cast<uint32_t>(CudaMemoryOperation::pool_create) - 1);
    to->pool_kind = from.pool_kind;
    writer_.commit(to, {RecordType::cuda_memory, 0, 0, 0}, time);
  }

  void unified_memory(const CuptiUmActivity &from) {
    bool lasts = from.counter != kCuptiUmCpuFaults && from.counter != kCuptiUmThrashing &&
                 from.counter != kCuptiUmRemoteMap;
    uint64_t start = from.start;
    uint64_t end = lasts ? from.end : start;
    if (!usable(start, end) || !windows_.keeps(start, end)) {
      return;
    }
    auto *to = writer_.place<CudaUmRecord>(RecordType::cuda_um);
    if (to == nullptr) {
      return;
    }
    to->start = start;
    to->end = end;
    to->value = from.value;
    to->address = from.address;
    to->kind = from.counter;
    to->source = from.source;
    to->destination = from.destination;
    to->stream = from.stream;
    to->flags = from.flags;
    to->reserved = 0;
    writer_.commit(to, {RecordType::cuda_um, 0, 0, 0}, start);
  }

  void overhead(const CuptiOverheadActivity &from) {
    uint32_t tid = from.object_kind == kCuptiObjectThread ? from.object[1] : 0;
    uint32_t correlation = since(kCuptiSinceOverheadCorrelation) ? from.correlation : 0;
    own_time(from.start, from.end, from.overhead_kind, tid, correlation, 0);
  }

  void jit(const CuptiJitActivity &from) {
    uint32_t tid = since(kCuptiSinceJitThread) ? from.tid : 0;
    own_time(from.start, from.end, from.entry, tid, from.correlation, from.operation);
  }

  void own_time(uint64_t start, uint64_t end, uint32_t kind, uint32_t tid, uint32_t correlation,
                uint32_t jit) {
    if (!usable(start, end) || !windows_.keeps(start, end)) {
      return;
    }
    auto *to = writer_.place<CudaOverheadRecord>(RecordType::cuda_overhead);
    if (to == nullptr) {
      return;
    }
    to->start = start;
    to->end = end;
    to->kind = kind;
    to->tid = tid;
    to->correlation = correlation;
    to->jit = jit;
    writer_.commit(to, {RecordType::cuda_overhead, 0, 0, 0}, start);
  }

  void external(const CuptiExternalActivity &from) {
    if (is_outside(from.correlation)) {
      return;
    }
    writer_.append(
        CudaExternalRecord{
            {RecordType::cuda_external, 0, 0, 0}, from.external, from.external_kind, from.correlation},
        now_);
  }

  void device(const CuptiDeviceActivity &from) {
    uint32_t name = from.name != nullptr ? log_.intern(from.name) : 0;
    state_.devices.write(writer_, from, name);
  }

  void context(const CuptiContextActivity &from) {
    writer_.append(CudaContextRecord{{RecordType::cuda_context, 0, 0, 0},
                                     now_,
                                     from.context,
                                     from.device,
                                     from.null_stream,
                                     from.api,
                                     0},
                   now_);
  }

  void stream(const CuptiStreamActivity &from) {
    writer_.append(
        CudaStreamRecord{
            {RecordType::cuda_stream, 0, 0, 0}, now_, from.context, from.stream, from.priority, from.flag, 0},
        now_);
  }

  bool is_outside(uint32_t correlation) const {
    const CudaSeen::Call *call = state_.seen.call_of(correlation);
    return call != nullptr && call->outside;
  }

  // Moves times to our clock. False where they say nothing: then the record is counted.
  bool usable(uint64_t &start, uint64_t &end) {
    if (start == 0 || end < start) [[unlikely]] {
      bool runs = end == 0 && (start != 0 || batch_.forced);
      log_.file().count(runs ? kCuptiUnfinished : kCuptiInvalid);
      return false;
    }
    start += static_cast<uint64_t>(batch_.offset);
    end += static_cast<uint64_t>(batch_.offset);
    return (start >= earliest_ && end <= latest_ && start <= end) || is_of_other_clock(start, end);
  }

  // Kernels at times keep CUPTI's own clock, which is CLOCK_REALTIME, although the agent registered ours.
  [[gnu::cold]] bool is_of_other_clock(uint64_t &start, uint64_t &end) {
    ClockSample sample = sample_clocks(ClockKind::monotonic);
    uint64_t off = sample.realtime - sample.monotonic;
    if (start - off >= earliest_ && start - off <= end - off && end - off <= latest_) {
      start -= off;
      end -= off;
      say_clock_is_off(static_cast<int64_t>(off), "those on CLOCK_REALTIME were moved to it");
      return true;
    }
    log_.file().count(kCuptiInvalid);
    say_clock_is_off(static_cast<int64_t>(start - now_), "those that fit no clock were left out");
    return false;
  }

  [[gnu::cold]] void say_clock_is_off(int64_t by, std::string_view what = {}) {
    if (!state_.clock_is_off) {
      state_.clock_is_off = true;
      write_cuda_notice(log_, writer_, CudaNotice::clock, by, what.empty() ? 0 : log_.intern(what));
    }
  }

  static constexpr uint32_t kLocalPool = 1;

  const CuptiBatch &batch_;
  CudaState &state_;
  ProcessLog &log_;
  WideLog::Writer writer_;
  const CudaWindows windows_;
  const uint64_t now_;
  const uint64_t earliest_;  // times outside of these two are not of our clock
  const uint64_t latest_;
  CuptiApiActivity nested_[kNested];  // calls of the driver API: perhaps the runtime's
  uint32_t nested_count_ = 0;
  CuptiApiActivity outer_[kOuter] = {};  // the last calls of the runtime
  uint32_t outer_count_ = 0;
};

// What would have been written, had there been memory.
void count_lost(const CuptiBatch &batch) {
  CuptiActivity *record = nullptr;
  while (next_record(batch, &record)) {
    RecordType type = type_of(record->kind);
    if (type == RecordType::none) {
      batch.log.file().count(kCuptiUnknown);
    } else {
      batch.log.file().drop(type);
    }
  }
}

}  // namespace

void record_cuda_batch(const CuptiBatch &batch) {
  Busy busy;
  if (batch.lost || !busy) {
    return count_lost(batch);
  }
  CudaState &state = cuda_state();
  std::lock_guard lock(state.mutex);
  Decoding(batch, state).run();
}

}  // namespace warplens::agent
