// The spool on disk: the one place where its layout is written down (docs/dev/formats/spool.md explains it).
// Readers never include this file: the agent writes the field lists below into every spool it opens.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warplens {

inline constexpr char kSpoolMagic[8] = {'W', 'L', 'S', 'P', 'O', 'O', 'L', '1'};
inline constexpr uint32_t kSpoolVersion = 3;
inline constexpr uint32_t kChunkMagic = 0x4b484357;  // "WCHK" in memory order
inline constexpr uint32_t kNoThread = 0xffffffff;    // a chunk that belongs to the whole process
inline constexpr size_t kPage = 4096;                // every chunk starts on a multiple of it

enum class ClockKind : uint32_t { monotonic = 0, tsc = 1, cntvct = 2 };

// counter -> ns of CLOCK_MONOTONIC:  base_ns + ((counter - t0) * mult >> shift)
struct ClockParams {
  ClockKind kind;
  uint32_t shift;
  uint64_t t0;
  uint64_t base_ns;
  uint64_t mult;
};

enum class RecordType : uint8_t {
  none = 0,  // not written: a reader stops at the first one
  range = 1,
  start_end = 2,
  mark = 3,
  thread_switch = 4,
  origin = 5,
  thread = 6,
  domain = 7,
  category = 8,
  thread_name = 9,
  task_switch = 10,
  define = 11,
  sample = 12,
  operation = 13,
  op = 14,
  // In wide chunks only: see warplens/cuda_records.h.
  cuda_graph_node = 25,
  cuda_api = 32,
  cuda_kernel = 33,
  cuda_memcpy = 34,
  cuda_memset = 35,
  cuda_sync = 36,
  cuda_event = 37,
  cuda_graph = 38,
  cuda_memory = 39,
  cuda_um = 40,
  cuda_overhead = 41,
  cuda_device = 42,
  cuda_context = 43,
  cuda_stream = 44,
  cuda_external = 45,
  cuda_backtrace = 46,
  cuda_notice = 47,
  cuda_thread = 48,
  // In wide chunks only: see warplens/cpu_records.h.
  cpu_frame = 49,
  cpu_module = 50,
  cpu_sample = 51,
  cpu_state = 52,
  os_call = 53,
  gil = 54,
  python_span = 55,
  cpu_notice = 61,
  // In wide chunks only: see warplens/intrakernel_records.h.
  intrakernel_launch = 62,
  intrakernel_read = 63,
};
// FileHeader::dropped, by record type; slot 0 counts strings, and some count what is no record:
inline constexpr size_t kDropSlots = 64;
inline constexpr size_t kMisplaced =
    26;  // not lost: times of a clock that nothing ties to ours; stamped at the call
inline constexpr size_t kUndecoded =
    27;  // not lost: deferred events whose schema says no kind or time; kept as marks
inline constexpr size_t kLostPayloads = 28;  // their event is there, with payload type 7 and offset 0
inline constexpr size_t kCutPayloads = 29;   // not lost: payloads that were too long and cut
inline constexpr size_t kInSignal = 30;  // calls from a signal handler that interrupted the same thread badly
inline constexpr size_t kCutNames = 31;  // not lost: names that were too long and cut
inline constexpr size_t kCuptiDropped = 56;  // records that CUPTI itself says it dropped
inline constexpr size_t kCuptiInvalid =
    57;  // GPU records without usable times (0, or an end before the start)
inline constexpr size_t kCuptiUnfinished = 58;  // GPU work that was still running when it was last asked for
inline constexpr size_t kCuptiUnknown = 59;     // records of kinds that nobody asked for
inline constexpr size_t kCuptiRepeated = 60;    // not lost: records that came twice

// Record flags. The low three bits are the NVTX payload type (0 none, 1 u64, 2 i64, 3 f64, 4 u32, 5 i32, 6 f32,
// 7 extended: `payload` is then the file offset of a BlobHead, 0 when it was lost).
inline constexpr uint8_t kPayloadMask = 0x07;
inline constexpr uint8_t kFlagColor = 0x08;
inline constexpr uint8_t kFlagInherited =
    0x10;  // open in the parent when this process was forked; start is the fork
inline constexpr uint8_t kFlagClipped = 0x20;  // crosses an edge of the capture
inline constexpr uint8_t kFlagClosed =
    0x40;  // of a slot: the range has ended, but there was no space to write it

// In the place of an errno: ControlPage::max_bytes kept the file from growing. No system call fails with it.
inline constexpr int kMaxSizeReached = 4096;

// FileHeader::flags
inline constexpr uint32_t kSpoolBuffered = 1;  // no space was reserved: the file is up to 100 ms behind

// First 4096 bytes of the file. Static facts (process, host, layout) are the JSON text behind it; here is what changes.
struct FileHeader {
  char magic[8];
  uint32_t version;
  uint32_t first_chunk;  // offset of the first chunk
  uint32_t json_offset;
  uint32_t json_size;
  ClockParams clock;
  std::atomic<uint64_t> file_size;  // bytes reserved on disk
  std::atomic<uint64_t> chunk_end;  // bytes handed out as chunks; nothing behind it was ever written
  std::atomic<uint64_t> end_ns;     // set when the process ends in an orderly way, else 0
  std::atomic<uint32_t> error;      // errno of the first failure or kMaxSizeReached, else 0
  uint32_t flags;                   // kSpool…
  std::atomic<uint64_t> dropped[kDropSlots];
  std::atomic<uint64_t> first_loss_ns;  // when a record was dropped for the first time, 0 = never
  std::atomic<uint64_t> last_loss_ns;   // and for the last time
  // Of a flight recorder: what its chunks held that were written anew.
  std::atomic<uint64_t> given_up;     // records
  std::atomic<uint64_t> given_up_ns;  // none of them is later, 0 = none
  std::atomic<uint64_t> early_ns;     // the same of chunks that were not old enough: there was no more space
};
static_assert(sizeof(FileHeader) <= kPage);

enum class ChunkKind : uint8_t { records = 1, strings = 2, open = 3, blobs = 4, wide = 5 };

struct ChunkHeader {
  uint32_t magic;  // written last
  ChunkKind kind;
  RecordType type;  // of all records in a wide chunk
  uint16_t stride;  // bytes per record; 0 for strings and blobs
  uint64_t size;    // whole chunk, this header included
  uint32_t thread;  // index of the owning thread, or kNoThread
  uint32_t
      sequence;  // in the order in which chunks were taken; kRenewing: the contents are just being emptied
  uint16_t generation;  // how often the chunk was emptied: blobs are pointed at with it (kBlobGeneration)
  uint8_t reserved1[38];
};
static_assert(sizeof(ChunkHeader) == 64);
inline constexpr uint32_t kRenewing = 0xffffffff;

// Every record starts with the same 8 bytes, stored as one word after the rest: type != 0 means "all of it is there".
struct RecordHead {
  RecordType type;
  uint8_t flags;
  uint16_t domain;  // 0 = the default domain
  uint32_t name;    // string id of the message or name, 0 = none
};

// range, start_end, mark (end = start), and the slots of open tables (end = 0, but with kFlagClosed).
struct EventRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint64_t payload;
  uint32_t color;
  uint32_t category;
};
static_assert(sizeof(EventRecord) == 40);

// A slot of the process-wide table of open start/end ranges: the record and what its end needs.
struct OpenSlot {
  EventRecord event;
  uint64_t id;
  uint64_t parent;  // id of the range that it is part of, 0 = none
  uint32_t thread;
  uint32_t task;  // 0 = none
};
static_assert(sizeof(OpenSlot) == 64);

// thread_switch: the records behind it in this chunk are of `thread`.
// task_switch: the push/pop ranges, marks, samples and operations that this thread writes from here on (in later chunks
// too) are of task `id`, 0 = none.
// thread: a thread of this process and its system id.  thread_name: head.name is the name of `tid`,
// by NVTX, or by Python where `category` is 1: that of NVTX counts more.
// domain: head.domain is called head.name.  category: `category` of head.domain is called head.name.
// define: the string head.name is JSON that defines object `id` of head.domain (a schema, a counter, a task, …);
// `start` is when, `thread` who.
struct MetaRecord {
  RecordHead head;
  uint64_t start;
  uint64_t id;
  uint32_t thread;
  uint32_t tid;
  uint32_t category;
  uint32_t reserved;
};
static_assert(sizeof(MetaRecord) == sizeof(EventRecord));

// The start_end record before it began on `thread`, in `task`; `id` is its own, `parent` its parent's id.
// Written only where one of them says more than the record itself.
struct OriginRecord {
  RecordHead head;
  uint64_t id;
  uint64_t parent;
  uint32_t thread;
  uint32_t task;
  uint64_t reserved;
};
static_assert(sizeof(OriginRecord) == sizeof(EventRecord));

// sample: an EventRecord too (end = start). `category` is the counter's id in head.domain; flags and `payload` hold the value
// as for a mark; without a value, `color` is NVTX's reason for that.

// Something was done to an object of head.domain: see OperationAction.
struct OperationRecord {
  RecordHead head;
  uint64_t start;
  uint64_t object;  // id or address
  uint64_t value;   // size, other object, …
  uint32_t action;
  uint32_t reserved;
};
static_assert(sizeof(OperationRecord) == sizeof(EventRecord));

// op: one call of a framework's operator, a push/pop range. While it is open, `sequence` is the address of the framework's own record.
struct OpRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  uint64_t
      sequence;  // kOpScope and below: the framework's scope; the rest: its sequence number, kNoSequence: none
  uint32_t shapes;  // text: of its inputs, as JSON; 0: not asked for
  uint32_t types;
};
static_assert(sizeof(OpRecord) == sizeof(EventRecord));
inline constexpr unsigned kOpScope = 56;  // the scope is in the bits from here on
inline constexpr uint64_t kNoSequence = (uint64_t{1} << kOpScope) - 1;
inline constexpr uint64_t kOpBackward = 1;  // the scope of a function of the backward pass

// The numbers are in every spool, with these names: readers need not know them.
enum class OperationAction : uint32_t {
  resource_destroy = 1,
  sync_destroy = 2,
  sync_acquire_start = 3,
  sync_acquire_failed = 4,
  sync_acquire_success = 5,
  sync_releasing = 6,
  heap_unregister = 7,
  heap_reset = 8,
  region_register = 9,
  region_resize = 10,
  region_unregister = 11,
  permissions_assign = 12,
  permissions_destroy = 13,
  permissions_reset = 14,
  permissions_bind = 15,
  permissions_unbind = 16,
  memory_initialized = 17,
};

// Behind a blobs chunk's header, padded to 8: a BlobHead and its bytes. A zero size_plus_1 (stored last) ends the contents.
// Where the schema holds pointers, the bytes they point to follow the fixed part, and each pointer is the distance of its
// bytes from the end of the head (0 = null).
// A file offset that leads to a blob has its chunk's generation in the bits from kBlobGeneration on: the blob is gone when the
// chunk has another one now.
inline constexpr unsigned kBlobGeneration = 48;
inline constexpr uint32_t kBlobAtEnd = 1;  // given when the range ended
inline constexpr uint32_t kBlobCut = 2;    // longer in truth
struct BlobHead {
  uint32_t size_plus_1;
  uint32_t flags;
  uint64_t schema;  // as NVTX numbers them: below 2^24 a predefined type, else defined in the event's domain
  uint64_t next;    // file offset of a further payload of the same event, 0 = none
};
static_assert(sizeof(BlobHead) == 24);

// Behind a strings chunk's header: StringHead, the bytes (UTF-8, no NUL), padding to 8. length_plus_1 is stored last.
struct StringHead {
  uint32_t length_plus_1;
  uint32_t id;
};

// The launcher's file, one per run and host, in the spool directory as "control": a ControlPage, a page of texts, and the
// windows. Agents and launcher change it together; nothing read from it is trusted.
inline constexpr char kControlMagic[8] = {'W', 'L', 'C', 'N', 'T', 'R', 'L', '1'};
inline constexpr uint32_t kControlVersion = 5;

// What opens windows in the traced programs; the launcher opens and closes them whatever this says.
enum class Trigger : uint32_t { none = 0, nvtx = 1, profiler_api = 2 };

// Why a window opened or closed. The numbers are in every control file.
enum class Cause : uint32_t {
  none = 0,
  start = 1,         // of the recording
  time = 2,          // --delay, --duration
  nvtx = 3,          // a range that --nvtx-capture names
  profiler_api = 4,  // cudaProfilerStart and Stop, warplens.capture()
  command = 5,       // `warplens start`, `warplens stop`
  limit = 6,         // --max-size
  keep = 7,          // the last seconds were asked for
  end = 8,           // of the recording
};

enum class DomainFilter : uint32_t { none = 0, include = 1, exclude = 2 };

// A time in which everything is recorded. Window i (from 0) is open while ControlPage::gate is 2 * i + 1.
// The process that moves the gate opens or closes a window. It takes the time right after that, or
// another process does that finds it missing, so that a process that dies half-way blocks nobody: a
// time can be 0 for a moment, or for good where nobody looked again.
struct CaptureWindow {
  std::atomic<uint64_t> open_ns;
  std::atomic<uint64_t> close_ns;
  std::atomic<uint32_t> opened_by;  // Cause
  std::atomic<uint32_t> closed_by;
  std::atomic<uint32_t> pid;  // of the process that opened it, 0 = the launcher
  uint32_t reserved;
};
static_assert(sizeof(CaptureWindow) == 32);
inline constexpr size_t kWindows = 8192;

// What is recorded of CUDA: CudaSettings::flags.
inline constexpr uint32_t kCudaTrace =
    1;  // GPU work, API calls, synchronisation, …; without it CUPTI is left alone
inline constexpr uint32_t kCudaAllApis = 2;     // calls that only ask for something, too
inline constexpr uint32_t kCudaGraphNodes = 4;  // what graphs do node by node; else each launch as a whole
inline constexpr uint32_t kCudaMemory = 8;      // allocations
inline constexpr uint32_t kCudaUm = 16;         // migrations of unified memory
inline constexpr uint32_t kCudaUmCpuFaults = 32;
inline constexpr uint32_t kCudaUmGpuFaults = 64;
inline constexpr uint32_t kCudaEvents = 128;  // cudaEventRecord
inline constexpr uint32_t kCudaToggle =
    256;  // CUPTI's kinds are on in windows only; else rows are chosen by time
inline constexpr uint32_t kCudaNoApi = 512;  // GPU work alone (what the API records cost can so be measured)

// Categories of API calls, for CudaSettings::backtrace and the thresholds below it (bit i, threshold i).
inline constexpr uint32_t kCudaKernelCalls = 1;
inline constexpr uint32_t kCudaMemoryCalls = 2;
inline constexpr uint32_t kCudaSyncCalls = 4;
inline constexpr uint32_t kCudaOtherCalls = 8;

struct CudaSettings {
  uint32_t flags;
  uint32_t flush_ms;         // how often finished records are asked for, 0 = when CUPTI's buffers are full
  uint32_t backtrace;        // kCuda…Calls
  uint32_t backtrace_ns[4];  // only of calls that take longer
  uint32_t reserved;
};
static_assert(sizeof(CudaSettings) == 32);

// What is recorded of the CPU side: CpuSettings::flags.
inline constexpr uint32_t kCpuPythonSamples = 1;
inline constexpr uint32_t kCpuNativeSamples = 2;  // perf events
inline constexpr uint32_t kCpuStates = 4;         // running, runnable, blocked
inline constexpr uint32_t kCpuOsCalls = 8;
inline constexpr uint32_t kCpuFileAccess = 16;  // calls on files whatever they take, with their bytes
inline constexpr uint32_t kCpuGil = 32;
inline constexpr uint32_t kCpuGc = 64;
inline constexpr uint32_t kCpuImports = 128;
inline constexpr uint32_t kCpuFunctions = 256;       // the Python functions that kFunctionsFile names
inline constexpr uint32_t kCpuPythonCalls = 512;     // each call of a Python function
inline constexpr uint32_t kCpuPythonEvents = 1024;   // exceptions, warnings, tasks of executors and pools
inline constexpr uint32_t kCpuPythonOpcodes = 2048;  // of Python samples: the instruction, too
inline constexpr uint32_t kCpuOps = 4096;            // operators of PyTorch
inline constexpr uint32_t kCpuOpInputs = 8192;       // of those: shapes and types of their inputs

enum class Backtrace : uint32_t { none = 0, automatic = 1, frame_pointer = 2, dwarf = 3 };

// In the spool directory: the Python functions to trace, one a line: module, colour (ARGB in hexadecimal digits, or nothing), dotted name;
// tabs between.
inline constexpr char kFunctionsFile[] = "python_functions.txt";

struct CpuSettings {
  uint32_t flags;
  Backtrace backtrace;
  uint32_t python_hz;
  uint32_t native_hz;         // 0: as often as suits the machine
  uint32_t stack_depth;       // most frames of a backtrace of an OS call
  uint32_t gil_threshold_ns;  // shorter holds and waits are only summed up
  uint64_t os_threshold_ns;   // shorter calls are not recorded
  uint64_t os_backtrace_ns;   // longer ones with their stack
};
static_assert(sizeof(CpuSettings) == 40);

struct ControlPage {
  char magic[8];
  uint32_t version;
  uint32_t
      has_space;  // 1: its pages can be written at any time; else a full disk may refuse it, see can_write
  ClockParams clock;
  std::atomic<uint64_t> processes;  // agents that started
  std::atomic<uint64_t> failed;     // agents that could not open a spool
  std::atomic<uint32_t> error;      // errno of the first of them
  std::atomic<uint64_t> lost;       // records of processes that have no spool
  // Where another NVTX tool is configured too: libraries whose calls it hears, and those whose calls it does not.
  std::atomic<uint32_t> chained;
  std::atomic<uint32_t> not_chained;

  std::atomic<uint32_t> gate;  // odd: recording; counts the openings and closings of windows
  Trigger trigger;
  uint32_t window_limit;    // windows that the trigger may open, 0 = any number
  uint32_t trigger_closes;  // 0: what the trigger opens stays open
  uint32_t any_domain;      // Trigger::nvtx: the message counts in every domain
  DomainFilter filter;      // which domains are recorded
  uint32_t filter_count;    // how many names of domains there are
  uint32_t reserved2;
  uint64_t keep_ns;    // flight recorder: chunks older than this may be written anew, 0 = keep everything
  uint64_t max_bytes;  // of all spool files of the run together, 0 = no limit
  std::atomic<uint64_t> bytes;  // reserved by them so far
  std::atomic<uint64_t> over;   // times that max_bytes kept a file from growing
  CudaSettings cuda;
  CpuSettings cpu;
};
static_assert(sizeof(ControlPage) <= kPage);

// Page 1: NUL-terminated UTF-8: the message and the domain of Trigger::nvtx ("" = the default domain), then the domains of
// the filter ("" again the default one).
inline constexpr size_t kControlTexts = kPage;
inline constexpr size_t kControlTextsSize = kPage;
inline constexpr size_t kControlWindows = 2 * kPage;
inline constexpr size_t kControlSize = kControlWindows + kWindows * sizeof(CaptureWindow);

}  // namespace warplens
