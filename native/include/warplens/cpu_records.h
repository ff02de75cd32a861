// CPU records of the spool.
// They have several sizes and are in wide chunks, as those of cuda_records.h. Threads have their
// system ids. Times are ns of the spool's clock.
#pragma once

#include "warplens/format.h"

namespace warplens {

enum class FrameKind : uint16_t { native = 1, python = 2, kernel = 3, task = 4 };

// A node of the tree of stacks: a stack is the number of its innermost frame, 0 = the empty stack. Written before what speaks of it;
// numbers rise, and `parent` (the caller) is lower. head.domain is a FrameKind, head.name the function: of Python its qualified
// name, of native code 0 (the reader looks it up by module and offset), of kernel code its symbol or 0 (looked up by address). A task is where the frames
// of an asyncio task begin, above those of the task that awaits it.
struct CpuFrameRecord {
  RecordHead head;
  uint32_t node;
  uint32_t parent;
  uint64_t
      address;  // of native code: where it returns to, or for the innermost frame of a sample what it executes
  uint64_t
      offset;  // of native code: `address` in the module's file, as its program headers map it (p_vaddr); else 0
  uint32_t file;        // Python: text, the source file
  uint32_t line;        // Python: 0 = not known
  uint32_t first_line;  // Python: of the function
  uint32_t module;      // native: number of a CpuModuleRecord, 0 = not known
};
static_assert(sizeof(CpuFrameRecord) == 48);

// kReturnAddress in head.flags: `address` is behind a call, so the line is that of the byte before it.
inline constexpr uint8_t kReturnAddress = 0x01;

// A file that is mapped with code in it. head.name is its path.
struct CpuModuleRecord {
  RecordHead head;
  uint64_t time;   // when it was first seen
  uint64_t begin;  // address of its first mapped byte
  uint64_t end;
  uint64_t bias;      // address - bias = p_vaddr
  uint32_t module;    // from 1
  uint32_t build_id;  // text: lower-case hexadecimal digits, 0 = none
};
static_assert(sizeof(CpuModuleRecord) == 48);

enum class SampleKind : uint16_t {
  python = 1,  // taken by the clock: whatever the thread did, on a CPU or not
  native = 2,  // taken by perf, while the thread ran; Python frames are among the native ones
  task = 3     // taken by the clock, of a task of asyncio; the thread is that of its loop
};
inline constexpr uint8_t kSampleOnCpu =
    0x01;  // the thread ran since the last tick (python; native: always); it ran the task (task)
inline constexpr uint8_t kSampleGil = 0x02;  // it held the GIL (python)
inline constexpr uint8_t kSampleLate =
    0x04;  // the Python frames were read too late to be sure of them (native)
inline constexpr uint8_t kSampleCut = 0x08;        // the stack is deeper than what was read
inline constexpr uint8_t kSampleException = 0x10;  // it handled an exception (python)
inline constexpr uint8_t kSampleOuter = 0x20;  // the task waits for another one, which has its own samples
inline constexpr uint8_t kSampleReady = 0x40;  // the task waits for nothing but its turn

// `count` ticks, from `start` to `end`, found the thread with this stack. head.domain is a SampleKind; head.name the asyncio task, 0 = none.
struct CpuSampleRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;  // of the last of them; the same as start where it was one
  uint32_t tid;
  uint32_t stack;
  uint32_t count;
  uint32_t cpu;  // native; of a task its number in the process; of Python the opcode of the instruction in
                 // the innermost frame, as it stands in memory; 0xffffffff: not known
  uint64_t interval;  // ns between ticks as asked for
};
static_assert(sizeof(CpuSampleRecord) == 48);

enum class ThreadState : uint16_t { running = 1, runnable = 2, blocked = 3 };

// From switches (exact) or, with kStateSampled, from what the scheduler had counted between two looks.
inline constexpr uint8_t kStateSampled = 0x01;
struct CpuStateRecord {
  RecordHead head;  // domain: ThreadState
  uint64_t start;
  uint64_t end;
  uint32_t tid;
  uint32_t cpu;  // 0xffffffff: not known, or on none
};
static_assert(sizeof(CpuStateRecord) == 32);

// A call of the C library. head.name is its name, head.domain its errno (0 = it succeeded).
inline constexpr uint8_t kOsFile =
    0x01;  // on a file, or what may be one: `object` is a number of bytes, or of open() its flags
struct OsCallRecord {
  RecordHead head;
  uint64_t start;
  uint64_t end;
  int64_t result;
  uint64_t object;  // bytes that were asked for; address of the mutex, condition, …; flags of open
  uint32_t tid;
  int32_t fd;      // -1 = none
  uint32_t text;   // path, peer, program, … of the call or of its descriptor; 0 = none
  uint32_t stack;  // 0 = none
};
static_assert(sizeof(OsCallRecord) == 56);

enum class GilAction : uint16_t {
  hold = 1,
  wait = 2,
  brief = 3  // holds and waits below the threshold since the last such record of the thread
};
struct GilRecord {
  RecordHead head;  // domain: GilAction
  uint64_t start;
  uint64_t end;
  uint64_t held_ns;    // brief: in all; else 0
  uint64_t waited_ns;  // brief: in all; else 0
  uint32_t tid;
  uint32_t holds;  // brief: how many; else 0
  uint32_t waits;
  uint32_t interpreter;  // 0 = the main one
};
static_assert(sizeof(GilRecord) == 56);

enum class SpanKind : uint16_t {
  function = 1,   // head.name: qualified name
  gc = 2,         // value: generation, value2: objects collected, line: objects that cannot be
  import = 3,     // head.name: module; value: 1 = it failed
  exception = 4,  // head.name: type; an instant, where it was raised
  warning = 5,    // head.name: category and text
  task = 6,       // head.name: function; of an executor or a pool; value: 1 = it raised
  lock = 7,       // without a GIL: waited for a lock; head.name: the type of the object that it belongs to
  pause = 8  // without a GIL: all threads but one have to stand still; head.name: which side this one is on
};
inline constexpr uint8_t kSpanColor = 0x01;
inline constexpr uint8_t kSpanCut = 0x02;  // it was still running when recording ended, or began before
struct PythonSpanRecord {
  RecordHead head;  // domain: SpanKind
  uint64_t start;
  uint64_t end;
  int64_t value;
  int64_t value2;
  uint32_t tid;
  uint32_t file;  // text
  uint32_t line;
  uint32_t color;  // ARGB
};
static_assert(sizeof(PythonSpanRecord) == 56);

// Whether CPython replaces an instruction by forms that are specialised to the types that it met.
enum class OpcodeForm : uint8_t { only = 0, general = 1, specialised = 2 };

// What happened to the recording of the CPU side. Readers turn it into diagnostics.
enum class CpuNotice : uint32_t {
  python = 1,          // an interpreter was found; name: its version, value: 1 = free-threaded
  python_unknown = 2,  // its layout is not known: no stacks of Python; name: its version
  python_denied = 3,   // its memory cannot be read; value: errno
  torn = 4,            // stacks that were given up because they changed while they were read; value: how many
  slowed = 5,          // sampling took too much time and was made rarer; value: Hz
  sampled = 6,         // ticks that were due; value: how many; name: "python" or "native"
  missed = 7,          // ticks that came too late to be taken; value: how many
  perf_denied = 8,     // perf_event_open; value: errno, name: the requested event
  perf_lost = 9,       // samples or switches that the kernel could not deliver; value: how many
  native = 10,         // native samples are taken; value: Hz, name: event
  kernel_hidden = 11,  // native samples leave out the time in the kernel
  backtrace = 12,      // the requested unwinding is unavailable; name: the one used instead
  schedstat = 13,      // thread states come from schedstat; value: ns between looks
  gil_unknown = 14,    // the interpreter's GIL was not found, or it has none; name: its version
  bootstrap = 15,      // Python hooks could not be put in; name: what failed, and why
  function = 16,       // a function to trace that was not found; name: its name
  os_lost = 17,        // OS calls of this process cannot be seen; name: why
  torn_detected = 18,  // of `sampled`: stacks that were impossible and read again; value: how many
  older = 19,          // this Python is too old for a requested part; name: the part, and since when it works
  parks_unknown = 21,  // how this free-threaded Python waits for locks is not known; name: its version
  kernel_frames_hidden = 20,  // native samples have the time in the kernel, but not where it was spent
  torch = 23,                 // operators of PyTorch are recorded; name: its version
  torch_unknown = 24,         // they cannot be; name: the version, and why
  opcode = 22,  // a name of this Python's instructions; value: the opcode, and an OpcodeForm times 256
};

struct CpuNoticeRecord {
  RecordHead head;  // name: a text, 0 = none
  uint64_t start;
  int64_t value;
  CpuNotice notice;
  uint32_t reserved;
};
static_assert(sizeof(CpuNoticeRecord) == 32);

}  // namespace warplens
