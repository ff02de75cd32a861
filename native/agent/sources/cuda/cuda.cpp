// The CUDA source: the callbacks that CUPTI's dispatcher calls.
#include "cuda.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace warplens::agent {
namespace {

constexpr size_t kPath = 4096;  // bytes of the names of open ranges; those that do not fit are left out

// In static storage and never destroyed: CUPTI may hand over batches after our exit handlers ran.
alignas(CudaState) char g_storage[sizeof(CudaState)];

void begin(const Cupti &cupti, ProcessLog &log, const CudaSettings &settings) {
  Busy busy;
  if (!busy) {
    return;
  }
  CudaState &state = cuda_state();
  state.devices.find_driver();
  {
    std::lock_guard lock(state.mutex);
    state.settings = settings;
    state.begin_ns = now_ns(log.clock());
    state.clock_is_off = false;
    state.seen.clear();
    state.devices.begin();
    state.threads.begin();
  }
  begin_cuda_calls(cupti, log, settings);
}

void notice(ProcessLog &log, CudaNotice what, int64_t value, std::string_view text) {
  Busy busy;
  if (!busy) {
    return log.file().drop(RecordType::cuda_notice);
  }
  uint32_t number = text.empty() ? 0 : log.intern(text);
  WideLog::Writer writer(log.wide());
  write_cuda_notice(log, writer, what, value, number);
}

void made(ProcessLog &log, const CuptiMade &made) {
  CudaState &state = cuda_state();
  CudaDevices::Places places{};
  if (made.stream_handle == 0 && !state.devices.knows_places()) {
    places = state.devices.ask_driver();  // not while this thread is busy: CUPTI may hand it a batch
  }
  Busy busy;
  if (!busy) {
    return log.file().drop(made.stream_handle != 0 ? RecordType::cuda_stream : RecordType::cuda_context);
  }
  uint64_t now = now_ns(log.clock());
  std::lock_guard lock(state.mutex);
  WideLog::Writer writer(log.wide());
  if (made.stream_handle != 0) {
    CudaStreamRecord record{};
    record.head.type = RecordType::cuda_stream;
    record.start = now;
    record.context = made.context;
    record.stream = made.stream;
    record.handle = made.stream_handle;
    writer.append(record, now);
    return;
  }
  CudaContextRecord record{};
  record.head.type = RecordType::cuda_context;
  record.start = now;
  record.context = made.context;
  record.device = record.null_stream = 0xffffffff;
  record.handle = made.context_handle;
  writer.append(record, now);
  state.devices.place(writer, places);
}

// The names of the ranges and operators that a thread has open, the outermost first, one a line; 0 where there are none.
uint32_t open_names(ProcessLog &log, const ThreadLog &thread) {
  char text[kPath];
  size_t size = 0;
  thread.each_open([&](const RecordHead &head) {
    std::string_view name = log.text(head.name);
    if (name.empty() || size + name.size() + 1 > kPath) {
      return;
    }
    if (size != 0) {
      text[size++] = '\n';
    }
    std::memcpy(text + size, name.data(), name.size());
    size += name.size();
  });
  return size != 0 ? log.passing({text, size}) : 0;
}

void graph_node(ProcessLog &log, const ThreadLog *thread, uint64_t node, uint64_t original) {
  Busy busy;
  if (!busy) {
    return log.file().drop(RecordType::cuda_graph_node);
  }
  CudaGraphNodeRecord record{};
  record.head = {RecordType::cuda_graph_node, 0, 0, 0};
  if (original == 0 && thread != nullptr) {
    record.head.name = open_names(log, *thread);
  }
  record.start = now_ns(log.clock());
  record.node = node;
  record.original = original;
  record.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  WideLog::Writer(log.wide()).append(record, record.start);
}

}  // namespace

CudaState &cuda_state() {
  static CudaState *state = new (g_storage) CudaState;
  return *state;
}

void write_cuda_notice(ProcessLog &log, WideLog::Writer &writer, CudaNotice notice, int64_t value,
                       uint32_t text) {
  CudaNoticeRecord record{};
  record.head = {RecordType::cuda_notice, 0, 0, text};
  record.start = now_ns(log.clock());
  record.value = value;
  record.notice = notice;
  writer.append(record, record.start);
}

const CuptiSource kCudaSource{begin, record_cuda_batch, notice, wants_cuda_call, note_cuda_call,
                              made,  graph_node};

}  // namespace warplens::agent
