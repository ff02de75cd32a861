// CUDA records, of several sizes, each type in separate wide chunks. The spool describes their fields as it
// does those of format.h. Where CUPTI numbers things (kinds of copies, of memory, …) its numbers are kept: readers name them.
#pragma once

#include "warplens/format.h"

namespace warplens {

// head.name is the name of the function as CUPTI gives it; head.domain is 0 for the runtime API, 1 for the driver API.
struct CudaApiRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint32_t tid;
  uint32_t correlation;
  int32_t result;
  uint32_t cbid;
};
static_assert(sizeof(CudaApiRecord) == 40);

// head.name is the mangled name.
struct CudaKernelRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  int32_t grid_x, grid_y, grid_z;
  int32_t block_x, block_y, block_z;
  int32_t static_shared;
  int32_t dynamic_shared;
  uint32_t local_per_thread;
  uint32_t shared_executed;
  uint64_t local_total;
  uint64_t graph_node;  // 0: not in a graph
  int64_t grid_id;
  uint32_t graph;
  uint16_t registers;
  uint8_t launch_type;
  uint8_t cache_config;
  uint32_t cluster_x, cluster_y, cluster_z;
  uint32_t channel;
};
static_assert(sizeof(CudaKernelRecord) == 128);

struct CudaMemcpyRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint64_t bytes;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t copies;  // how many were taken together, 0 = not known
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;                // 1: asynchronous
  uint32_t source_device;       // peer copies; else 0xffffffff
  uint32_t destination_device;  // peer copies; else 0xffffffff
  uint32_t reserved;
};
static_assert(sizeof(CudaMemcpyRecord) == 80);

struct CudaMemsetRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint64_t bytes;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t value;
  uint32_t memory_kind;
  uint32_t flags;  // 1: asynchronous
};
static_assert(sizeof(CudaMemsetRecord) == 72);

struct CudaSyncRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint32_t kind;  // 1 event, 2 stream waits for event, 3 stream, 4 context
  uint32_t correlation;
  uint32_t context;
  uint32_t stream;  // 0xffffffff: none
  uint32_t event;   // 0xffffffff: none
  int32_t result;
  uint64_t event_sync;  // which cudaEventRecord of the event it waits for, 0 = not known
};
static_assert(sizeof(CudaSyncRecord) == 56);

// cudaEventRecord. start: when the GPU came to it, 0 where CUPTI does not say.
struct CudaEventRecord {
  RecordHead head;
  uint64_t start;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t event;
  uint32_t correlation;
  uint32_t reserved;
  uint64_t event_sync;
};
static_assert(sizeof(CudaEventRecord) == 48);

// A launch of a graph as a whole.
struct CudaGraphRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t graph;
  uint32_t graph_exec;  // 0 = not known
};
static_assert(sizeof(CudaGraphRecord) == 48);

// A node was added to a graph, or with `original` copied from that node: into a clone, or an executable graph. head.name: the open
// push/pop ranges and operators of the thread, the outermost first, one a line; 0 = none, or a copy.
struct CudaGraphNodeRecord {
  RecordHead head;
  uint64_t start;
  uint64_t node;
  uint64_t original;  // 0: it is no copy
  uint32_t tid;
  uint32_t reserved;
};
static_assert(sizeof(CudaGraphNodeRecord) == 40);

enum class CudaMemoryOperation : uint32_t {
  allocate = 1,
  release = 2,
  pool_create = 3,
  pool_destroy = 4,
  pool_trim = 5,
};

// head.name: what the program calls it, or the library that allocates, 0 = nothing.
struct CudaMemoryRecord {
  RecordHead head;
  uint64_t start;
  uint64_t address;
  uint64_t bytes;
  uint64_t pc;
  uint64_t pool;  // its address, 0 = none
  uint64_t pool_size;
  uint64_t pool_used;
  uint64_t pool_threshold;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  CudaMemoryOperation operation;
  uint32_t memory_kind;
  uint32_t pool_kind;
  uint32_t reserved;
};
static_assert(sizeof(CudaMemoryRecord) == 104);

// Unified memory. `kind` is CUPTI's kind of counter, which says what `value` is (bytes, faults, …).
struct CudaUmRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint64_t value;
  uint64_t address;
  uint32_t kind;
  uint32_t source;
  uint32_t destination;
  uint32_t stream;
  uint32_t flags;  // why: a migration's cause, how a page was accessed
  uint32_t reserved;
};
static_assert(sizeof(CudaUmRecord) == 64);

// Time that the driver or CUPTI takes for itself. `kind` is CUPTI's; of a compilation (`jit` != 0) it is CUPTI's entry type.
struct CudaOverheadRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint32_t kind;
  uint32_t tid;  // 0 = not known
  uint32_t correlation;
  uint32_t jit;  // the operation of a compilation, 0 = none
};
static_assert(sizeof(CudaOverheadRecord) == 40);

// head.name: its name. A later record of a device replaces the one before: where it is may become known later.
struct CudaDeviceRecord {
  RecordHead head;
  uint32_t device;
  uint32_t major, minor;  // compute capability
  uint32_t multiprocessors;
  uint64_t memory;            // bytes
  uint64_t memory_bandwidth;  // kB/s
  uint32_t clock;             // kHz
  uint32_t memory_clock;      // kHz
  uint64_t uuid_low, uuid_high;
  uint32_t pci_domain, pci_bus, pci_device;
  uint32_t l2_size;
};
static_assert(sizeof(CudaDeviceRecord) == 80);

// handle: CUcontext, by which the program knows it (and names it through NVTX); 0 = not known. Records of one context or stream
// complete each other: one may know what another does not. device and null_stream: 0xffffffff = not known.
struct CudaContextRecord {
  RecordHead head;
  uint64_t start;
  uint32_t context;
  uint32_t device;
  uint32_t null_stream;
  uint32_t api;
  uint64_t handle;
};
static_assert(sizeof(CudaContextRecord) == 40);

// handle: CUstream, 0 = not known.
struct CudaStreamRecord {
  RecordHead head;
  uint64_t start;
  uint32_t context;
  uint32_t stream;
  uint32_t priority;
  uint32_t kind;  // CUPTI's stream flag: 1 default, 2 non-blocking, 3 null; 0 = not known
  uint64_t handle;
};
static_assert(sizeof(CudaStreamRecord) == 40);

// A framework said that the API calls of `correlation` belong to its own `external`.
struct CudaExternalRecord {
  RecordHead head;
  uint64_t external;
  uint32_t kind;
  uint32_t correlation;
};
static_assert(sizeof(CudaExternalRecord) == 24);

// An API call that `--cudabacktrace` asks about. `frames` is its stack: CpuFrameRecord::node; 0 = none.
struct CudaBacktraceRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint64_t frames;
  uint32_t tid;
  uint32_t correlation;
  uint32_t category;  // one of kCuda…Calls
  uint32_t reserved;
};
static_assert(sizeof(CudaBacktraceRecord) == 48);

// What happened to the recording of CUDA itself. Readers turn it into diagnostics.
enum class CudaNotice : uint32_t {
  recording = 1,  // value: CUPTI's version; name: the library's path
  driver = 2,     // value: the driver's CUDA version
  no_cupti = 3,   // name: where it was looked for
  busy = 4,       // another tool has CUPTI; value: the error, name: the tool, if CUPTI says so
  failed = 5,     // value: the error, name: the function that gave it
  stolen = 6,     // another tool took the buffers, or turned kinds off; value: ns since the last record
  clock = 7,  // CUPTI's times are not on our clock; value: ns that the first were off; name: what was done
  converted =
      8,  // times were moved to our clock by an offset measured at the start; value: how uncertain it is, ns
  flush_hung = 9,  // the last records did not come in time; value: ms waited
  too_old = 10,    // CUPTI lacks something that was asked for; name: what
  gated = 11,      // kinds stay on outside of the windows, with their cost; value: CUPTI's version
  finalized = 12,  // CUPTI shut itself down after a fatal error of the program; value: the error
};

struct CudaNoticeRecord {
  RecordHead head;  // name: a text, 0 = none
  uint64_t start;
  int64_t value;
  CudaNotice notice;
  uint32_t reserved;
};
static_assert(sizeof(CudaNoticeRecord) == 32);

// head.name: what the system called the thread soon after its first call, which began at `start`. Threads that had ended have none.
struct CudaThreadRecord {
  RecordHead head;
  uint64_t start;
  uint32_t tid;
  uint32_t reserved;
};
static_assert(sizeof(CudaThreadRecord) == 24);

}  // namespace warplens
