// The fields of the records of cuda_records.h, for readers; and of all wide records, as JSON.

#include "schema.h"
#include "spool/wide/wide_fields.h"
#include "warplens/cuda_records.h"

namespace warplens {
namespace {

#define R CudaApiRecord
constexpr WideField kApi[] = {FIELD(R, start),       FIELD(R, end),    FIELD(R, tid),
                              FIELD(R, correlation), FIELD(R, result), FIELD(R, cbid)};
#undef R
#define R CudaKernelRecord
constexpr WideField kKernel[] = {FIELD(R, start),
                                 FIELD(R, end),
                                 FIELD(R, device),
                                 FIELD(R, context),
                                 FIELD(R, stream),
                                 FIELD(R, correlation),
                                 FIELD(R, grid_x),
                                 FIELD(R, grid_y),
                                 FIELD(R, grid_z),
                                 FIELD(R, block_x),
                                 FIELD(R, block_y),
                                 FIELD(R, block_z),
                                 FIELD(R, static_shared),
                                 FIELD(R, dynamic_shared),
                                 FIELD(R, local_per_thread),
                                 FIELD(R, shared_executed),
                                 FIELD(R, local_total),
                                 FIELD(R, graph_node),
                                 FIELD(R, grid_id),
                                 FIELD(R, graph),
                                 FIELD(R, registers),
                                 FIELD(R, launch_type),
                                 FIELD(R, cache_config),
                                 FIELD(R, cluster_x),
                                 FIELD(R, cluster_y),
                                 FIELD(R, cluster_z),
                                 FIELD(R, channel)};
#undef R
#define R CudaMemcpyRecord
constexpr WideField kMemcpy[] = {FIELD(R, start),
                                 FIELD(R, end),
                                 FIELD(R, bytes),
                                 FIELD(R, device),
                                 FIELD(R, context),
                                 FIELD(R, stream),
                                 FIELD(R, correlation),
                                 FIELD(R, graph_node),
                                 FIELD(R, graph),
                                 FIELD(R, copies),
                                 FIELD(R, copy_kind),
                                 FIELD(R, source_kind),
                                 FIELD(R, destination_kind),
                                 RENAMED(R, flags, "asynchronous"),
                                 FIELD(R, source_device),
                                 FIELD(R, destination_device)};
#undef R
#define R CudaMemsetRecord
constexpr WideField kMemset[] = {
    FIELD(R, start),   FIELD(R, end),    FIELD(R, bytes),       FIELD(R, device),
    FIELD(R, context), FIELD(R, stream), FIELD(R, correlation), FIELD(R, graph_node),
    FIELD(R, graph),   FIELD(R, value),  FIELD(R, memory_kind), RENAMED(R, flags, "asynchronous")};
#undef R
#define R CudaSyncRecord
constexpr WideField kSync[] = {FIELD(R, start),       FIELD(R, end),     FIELD(R, kind),
                               FIELD(R, correlation), FIELD(R, context), FIELD(R, stream),
                               FIELD(R, event),       FIELD(R, result),  FIELD(R, event_sync)};
#undef R
#define R CudaEventRecord
constexpr WideField kEvent[] = {FIELD(R, start), FIELD(R, device),      FIELD(R, context),   FIELD(R, stream),
                                FIELD(R, event), FIELD(R, correlation), FIELD(R, event_sync)};
#undef R
#define R CudaGraphRecord
constexpr WideField kGraph[] = {FIELD(R, start),   FIELD(R, end),       FIELD(R, device),
                                FIELD(R, context), FIELD(R, stream),    FIELD(R, correlation),
                                FIELD(R, graph),   FIELD(R, graph_exec)};
#undef R
#define R CudaMemoryRecord
constexpr WideField kMemory[] = {FIELD(R, start),     FIELD(R, address),        FIELD(R, bytes),
                                 FIELD(R, pc),        FIELD(R, pool),           FIELD(R, pool_size),
                                 FIELD(R, pool_used), FIELD(R, pool_threshold), FIELD(R, device),
                                 FIELD(R, context),   FIELD(R, stream),         FIELD(R, correlation),
                                 FIELD(R, operation), FIELD(R, memory_kind),    FIELD(R, pool_kind)};
#undef R
#define R CudaUmRecord
constexpr WideField kUm[] = {FIELD(R, start),       FIELD(R, end),    FIELD(R, value),
                             FIELD(R, address),     FIELD(R, kind),   FIELD(R, source),
                             FIELD(R, destination), FIELD(R, stream), RENAMED(R, flags, "cause")};
#undef R
#define R CudaOverheadRecord
constexpr WideField kOverhead[] = {FIELD(R, start), FIELD(R, end),         FIELD(R, kind),
                                   FIELD(R, tid),   FIELD(R, correlation), FIELD(R, jit)};
#undef R
#define R CudaDeviceRecord
constexpr WideField kDevice[] = {
    FIELD(R, device),          FIELD(R, major),        FIELD(R, minor),
    FIELD(R, multiprocessors), FIELD(R, memory),       FIELD(R, memory_bandwidth),
    FIELD(R, clock),           FIELD(R, memory_clock), FIELD(R, uuid_low),
    FIELD(R, uuid_high),       FIELD(R, pci_domain),   FIELD(R, pci_bus),
    FIELD(R, pci_device),      FIELD(R, l2_size)};
#undef R
#define R CudaContextRecord
constexpr WideField kContext[] = {FIELD(R, start),       FIELD(R, context), FIELD(R, device),
                                  FIELD(R, null_stream), FIELD(R, api),     FIELD(R, handle)};
#undef R
#define R CudaStreamRecord
constexpr WideField kStream[] = {FIELD(R, start),    FIELD(R, context), FIELD(R, stream),
                                 FIELD(R, priority), FIELD(R, kind),    FIELD(R, handle)};
#undef R
#define R CudaExternalRecord
constexpr WideField kExternal[] = {FIELD(R, external), FIELD(R, kind), FIELD(R, correlation)};
#undef R
#define R CudaBacktraceRecord
constexpr WideField kBacktrace[] = {FIELD(R, start), FIELD(R, end),         FIELD(R, frames),
                                    FIELD(R, tid),   FIELD(R, correlation), FIELD(R, category)};
#undef R
#define R CudaNoticeRecord
constexpr WideField kNotice[] = {FIELD(R, start), FIELD(R, value), FIELD(R, notice)};
#undef R
#define R CudaGraphNodeRecord
constexpr WideField kGraphNode[] = {FIELD(R, start), FIELD(R, node), FIELD(R, original), FIELD(R, tid)};
#undef R
#define R CudaThreadRecord
constexpr WideField kThread[] = {FIELD(R, start), FIELD(R, tid)};
#undef R

constexpr WideRecord kRecords[] = {
    {"cuda_graph_node", RecordType::cuda_graph_node, sizeof(CudaGraphNodeRecord), kGraphNode},
    {"cuda_api", RecordType::cuda_api, sizeof(CudaApiRecord), kApi},
    {"cuda_kernel", RecordType::cuda_kernel, sizeof(CudaKernelRecord), kKernel},
    {"cuda_memcpy", RecordType::cuda_memcpy, sizeof(CudaMemcpyRecord), kMemcpy},
    {"cuda_memset", RecordType::cuda_memset, sizeof(CudaMemsetRecord), kMemset},
    {"cuda_sync", RecordType::cuda_sync, sizeof(CudaSyncRecord), kSync},
    {"cuda_event", RecordType::cuda_event, sizeof(CudaEventRecord), kEvent},
    {"cuda_graph", RecordType::cuda_graph, sizeof(CudaGraphRecord), kGraph},
    {"cuda_memory", RecordType::cuda_memory, sizeof(CudaMemoryRecord), kMemory},
    {"cuda_um", RecordType::cuda_um, sizeof(CudaUmRecord), kUm},
    {"cuda_overhead", RecordType::cuda_overhead, sizeof(CudaOverheadRecord), kOverhead},
    {"cuda_device", RecordType::cuda_device, sizeof(CudaDeviceRecord), kDevice},
    {"cuda_context", RecordType::cuda_context, sizeof(CudaContextRecord), kContext},
    {"cuda_stream", RecordType::cuda_stream, sizeof(CudaStreamRecord), kStream},
    {"cuda_external", RecordType::cuda_external, sizeof(CudaExternalRecord), kExternal},
    {"cuda_backtrace", RecordType::cuda_backtrace, sizeof(CudaBacktraceRecord), kBacktrace},
    {"cuda_notice", RecordType::cuda_notice, sizeof(CudaNoticeRecord), kNotice},
    {"cuda_thread", RecordType::cuda_thread, sizeof(CudaThreadRecord), kThread},
};

void append(std::string &out, const WideRecord &record) {
  append_pieces(out,
                {"\"", record.name, "\": {\"id\": ", std::to_string(static_cast<int>(record.type)),
                 ", \"size\": ", std::to_string(record.size),
                 ", \"fields\": [[\"type\", \"u1\", 0], [\"flags\", \"u1\", 1], [\"domain\", \"u2\", 2], "
                 "[\"name\", \"u4\", 4]"});
  for (const WideField &field : record.fields) {
    append_pieces(out,
                  {", [\"", field.name, "\", \"", field.type, "\", ", std::to_string(field.offset), "]"});
  }
  out += "]}";
}

}  // namespace

std::span<const WideRecord> cuda_wide_records() {
  return kRecords;
}

std::string wide_schema_json() {
  std::string out = "\"wide\": {";
  const char *comma = "";
  for (auto records : {cuda_wide_records(), cpu_wide_records(), intrakernel_wide_records()}) {
    for (const WideRecord &record : records) {
      out += comma;
      append(out, record);
      comma = ", ";
    }
  }
  return out + "}";
}

}  // namespace warplens
