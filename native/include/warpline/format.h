// The spool on disk: the one place where its layout is written down (docs/dev/formats/spool.md explains it).
// Readers never include this file: the agent writes the field lists below into every spool it opens.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace warpline {

inline constexpr char kSpoolMagic[8] = {'W', 'A', 'R', 'P', 'S', 'P', 'L', '1'};
inline constexpr uint32_t kSpoolVersion = 1;
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
};
inline constexpr size_t kDropSlots = 16;  // FileHeader::dropped, by record type; slot 0 counts strings
inline constexpr size_t kInSignal =
    14;  // calls from a signal handler that interrupted the same thread at a bad moment
inline constexpr size_t kCutNames = 15;  // not lost: names that were too long and cut

// Record flags. The low three bits are the NVTX payload type (0 none, 1 u64, 2 i64, 3 f64, 4 u32, 5 i32, 6 f32, 7 extended).
inline constexpr uint8_t kPayloadMask = 0x07;
inline constexpr uint8_t kFlagColor = 0x08;
inline constexpr uint8_t kFlagInherited =
    0x10;  // open in the parent when this process was forked; start is the fork
inline constexpr uint8_t kFlagClipped = 0x20;  // crosses an edge of the capture

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
  std::atomic<uint32_t> error;      // errno of the first failure, else 0
  std::atomic<uint32_t> state;      // 1 = the agent turned itself off
  std::atomic<uint64_t> dropped[kDropSlots];
};
static_assert(sizeof(FileHeader) <= kPage);

enum class ChunkKind : uint8_t { records = 1, strings = 2, open = 3 };

struct ChunkHeader {
  uint32_t magic;  // written last
  ChunkKind kind;
  uint8_t reserved0;
  uint16_t stride;  // bytes per record; 0 for strings
  uint64_t size;    // whole chunk, this header included
  uint32_t thread;  // index of the owning thread, or kNoThread
  uint32_t sequence;
  uint8_t reserved1[40];
};
static_assert(sizeof(ChunkHeader) == 64);

// Every record starts with the same 8 bytes, stored as one word after the rest: type != 0 means "all of it is there".
struct RecordHead {
  RecordType type;
  uint8_t flags;
  uint16_t domain;  // 0 = the default domain
  uint32_t name;    // string id of the message or name, 0 = none
};

// range, start_end, mark (end = start), and the slots of open tables (end = 0).
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
  uint32_t thread;
  uint32_t reserved;
};
static_assert(sizeof(OpenSlot) == 56);

// thread_switch: the records behind it in this chunk are of `thread`.
// origin: the start_end record before it began on `thread`.
// thread: a thread of this process and its system id.  thread_name: head.name is the name of `tid`.
// domain: head.domain is called head.name.  category: `category` of head.domain is called head.name.
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

// Behind a strings chunk's header: StringHead, the bytes (UTF-8, no NUL), padding to 8. length_plus_1 is stored last.
struct StringHead {
  uint32_t length_plus_1;
  uint32_t id;
};

// The launcher's page, one per run and host, in the spool directory as "control".
inline constexpr char kControlMagic[8] = {'W', 'A', 'R', 'P', 'C', 'T', 'L', '1'};
struct ControlPage {
  char magic[8];
  uint32_t version;
  uint32_t reserved;
  ClockParams clock;
  std::atomic<uint64_t> processes;  // agents that started
  std::atomic<uint64_t> failed;     // agents that could not open a spool
  std::atomic<uint32_t> error;      // errno of the first of them
  std::atomic<uint64_t> lost;       // records of processes that have no spool
};
static_assert(sizeof(ControlPage) <= kPage);

}  // namespace warpline
