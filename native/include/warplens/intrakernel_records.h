// In-kernel records of the spool.
// Which launch wrote into which buffer, and the contents. docs/dev/formats/intrakernel.md has the
// layout of buffers; here is what is needed to store only the used part.
#pragma once

#include "warplens/format.h"

namespace warplens {

// A launch that the program told of, just before it. head.name: what it is called, 0 = nothing.
struct IntrakernelLaunchRecord {
  RecordHead head;
  uint64_t start;
  uint64_t address;  // of the buffer
  uint64_t stream;   // CUstream; kAnyStream: not known
  uint32_t launch;   // number in this process, from 1
  uint32_t buffer;   // number in this process, from 1
  uint32_t generation;
  uint32_t tid;
  uint32_t buffer_name;  // text, 0 = none
  int32_t device;        // CUDA's number; -1: the buffer is in host memory, or nobody knows
};
static_assert(sizeof(IntrakernelLaunchRecord) == 56);
inline constexpr uint64_t kAnyStream = ~uint64_t{0};

enum class IntrakernelResult : uint16_t {
  stored = 1,
  unreadable = 2,   // value: the errno, or the error of CUDA
  no_buffer = 3,    // what is there is none; value: its first word
  limit = 4,        // the limit of bytes for this process is reached; value: bytes stored
  no_space = 5,     // the spool could not take all of it
  not_awaited = 6,  // the kernel did not end in time; value: ms
  child = 7,        // device memory in a fork child
};

// What a launch wrote. head.domain: an IntrakernelResult.
struct IntrakernelReadRecord {
  RecordHead head;
  uint64_t asked;  // when the agent began to wait for it: from here to `end` the thread's calls are ours
  uint64_t start;  // when the launch was known to be over
  uint64_t end;    // when its buffer had been read
  uint64_t blob;   // as in EventRecord::payload: it holds those of the pieces, in order; 0 = none
  uint64_t bytes;  // of all pieces
  int64_t value;
  uint64_t first_ns;  // on the GPU's clock: the first unit's begin and the last one's end, 0 = not known
  uint64_t last_ns;
  uint32_t launch;
  uint32_t tid;
  uint32_t tags;     // text: lines `number name`, 0 = none
  uint32_t units;    // that wrote in this launch
  uint32_t room;     // units that the buffer has
  uint32_t claimed;  // claim mode: units that asked for a place, else 0
  uint32_t slots;    // records that a unit has room for
  uint32_t blocks;   // highest linear CTA of a unit, plus 1
};
static_assert(sizeof(IntrakernelReadRecord) == 104);

// A piece of a launch is a separate buffer, with whole units in it and no more slots than they use. Where its blob has this flag, the
// piece goes on in the next blob.
inline constexpr uint32_t kBlobContinued = 4;

inline constexpr uint32_t kIntrakernelMagic = 0x4B494C57;
inline constexpr uint32_t kIntrakernelUnitMagic = 0x31554C57;

struct IntrakernelHead {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint32_t mode;  // 0 slices, 1 claim, 2 ring in shared memory
  uint32_t clock;
  uint32_t units;
  uint32_t slots;
  uint32_t stride;
  uint32_t warps_per_cta;
  uint32_t generation;
  uint32_t sample_blocks;
  uint64_t warp_mask;
  uint32_t reserved[20];
  uint32_t claimed;
  uint32_t reserved2[31];
};
static_assert(sizeof(IntrakernelHead) == 256 && offsetof(IntrakernelHead, claimed) == 128);

struct IntrakernelUnit {
  uint32_t magic;
  uint16_t version;
  uint16_t flags;  // 1: has ended
  uint32_t generation;
  uint32_t cta;
  uint32_t warp;
  uint32_t sm_begin;
  uint32_t sm_end;
  uint32_t cursor;
  uint64_t begin_ns;
  uint64_t end_ns;
  uint64_t begin_clock;
  uint64_t end_clock;
};
static_assert(sizeof(IntrakernelUnit) == 64);

}  // namespace warplens
