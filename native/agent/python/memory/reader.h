// Reads the Python stacks of other threads of this process, while they run: without the GIL, without stopping them.
#pragma once

#include <vector>

#include "codes.h"
#include "layout.h"
#include "memory.h"
#include "runs.h"

namespace warplens::agent {

// One frame as it was found.
struct PythonFrame {
  uint32_t code;   // in PythonReader::codes()
  int32_t offset;  // of its instruction, bytes; negative: it was entered just now
  bool is_entry;   // the evaluation loop was entered anew, from C, with it

  bool operator==(const PythonFrame &) const = default;
};

// What a thread was found doing.
struct PythonStack {
  std::vector<PythonFrame> frames;  // outermost first; empty: no Python
  bool is_cut = false;              // outer frames are missing
  bool handles_exception = false;   // it is in an except block, or in what that called
  uint32_t opcode = kNoOpcode;      // of the instruction in the innermost frame; only where it is asked for
  std::string task;                 // of asyncio, which this is of; empty: none, or not known
  uintptr_t loop = 0;               // of asyncio, that it runs; 0 = none
  uintptr_t globals = 0;            // of the module of that loop; 0 = that version has no place for them
  uintptr_t thread = 0;             // the threading.Thread that runs it; 0 = none
  uintptr_t coroutine = 0;          // of the task that the loop runs now; 0 = none
  size_t coroutine_from = 0;        // its first frame
};

// A frame as it lies in memory.
struct RawFrame {
  uintptr_t address, code, previous, instruction;
  uint32_t copy;  // of the code, that the instruction is in; 0: the code itself
  uint8_t owner;
  bool is_entry;
};

// A thread state: what Python knows a thread by.
struct PythonThread {
  uintptr_t address;
  uintptr_t interpreter;
  uintptr_t handle;  // pthread_t
  uint32_t tid;      // 0 = not known
  // Where its frames were at the last look, which is where they are looked for first.
  uintptr_t chunk = 0;
  size_t chunk_used = 0;
  std::vector<uintptr_t> outside;  // frames that were in no chunk: generators; in 3.10 all
};

// Not for several threads of ours at once: each has its own.
class PythonReader {
 public:
  //! `python` must be known.
  explicit PythonReader(const PythonRuntime &python) : python_(python), codes_(python) {}

  //! The thread states of all interpreters, newest first; false when there are none, or they changed meanwhile. Throws bad_alloc.
  bool find_threads(std::vector<PythonThread> &threads);

  //! What `thread` does now; false if unknown, because it did not stay long enough or is gone. Throws bad_alloc.
  bool read(PythonThread &thread, PythonStack &stack);

  //! From now on read() reads opcodes, too, where Python replaces them as it runs: from 3.11 on.
  void want_opcodes() { wants_opcodes_ = python_.at.version >= 0x030b; }

  //! The same by the system's number of a thread; false too where it is no thread of Python.
  bool read(uint32_t tid, PythonStack &stack);

  //! The stack in the tree of stacks; 0 = empty. Throws bad_alloc.
  uint32_t node(ProcessLog &log, const PythonStack &stack);

  PythonCodes &codes() { return codes_; }

  //! What a frame is, whose first frame_size() bytes were copied.
  RawFrame parse(const char *bytes) const;
  size_t frame_size() const;

  //! One frame into code and instruction; false where there is no such code. Throws bad_alloc.
  bool resolve(const RawFrame &raw, PythonFrame &frame);

  //! Stacks that were impossible and read again; and those of them that were given up.
  uint64_t detected() const { return detected_; }
  uint64_t given_up() const { return given_up_; }
  void add_given_up() { ++given_up_; }

 private:
  struct Region {
    uintptr_t from;
    size_t size;
    size_t first, second;  // where its two copies are in bytes_
  };
  enum class Result { good, torn, gone };

  Result attempt(PythonThread &thread, PythonStack &stack, bool last_one);
  Result copy(PythonThread &thread, uintptr_t &frame);
  bool walk(uintptr_t frame, bool &is_cut);
  size_t stable() const;
  Result resolve(size_t innermost, PythonStack &stack);
  void read_opcode(uintptr_t instruction, PythonStack &stack) const;
  void look_at_copies(const RawFrame *frames, size_t count);
  int64_t offset_of(const RawFrame &raw) const;
  bool is_in_code(uint32_t number, int64_t offset) const;
  bool handles(const uintptr_t *item) const;
  void find_task(size_t at, PythonStack &stack) const;
  void find_loop(size_t at, PythonStack &stack) const;
  const char *find(uintptr_t address, size_t &second) const;
  const char *fetch(uintptr_t address);
  void remember(PythonThread &thread) const;
  uint32_t tid_of(uintptr_t handle, uint32_t native);

  const PythonRuntime &python_;
  PythonCodes codes_;
  std::vector<PythonThread> known_;  // of read(tid)
  std::vector<Region> regions_;
  std::vector<char> bytes_;
  size_t used_ = 0;            // of bytes_
  mutable size_t hint_ = 0;    // the region that the last frame was in
  uintptr_t older_chunk_ = 0;  // that was not copied so far
  bool handles_exception_ = false;
  bool wants_opcodes_ = false;
  std::vector<Piece> pieces_;
  std::vector<RawFrame> raw_;  // innermost first
  std::vector<uintptr_t> addresses_;
  std::vector<uint32_t> numbers_;
  std::vector<CodeCopy> copies_;
  std::vector<PythonFrame> last_frames_;
  std::vector<uint32_t> last_nodes_;
  uint32_t last_generation_ = 0;
  uint64_t detected_ = 0;
  uint64_t given_up_ = 0;
};

}  // namespace warplens::agent
