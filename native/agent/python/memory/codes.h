// The code objects that were seen in stacks: their names, files and lines.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "agent/stacks.h"
#include "layout.h"
#include "lines.h"

namespace warplens::agent {

// A code object. Its address may be another's later: then the number is another.
struct PythonCode {
  uintptr_t name;  // addresses, to tell it from others at the same place
  uintptr_t file;
  uintptr_t lines;
  int32_t first_line;
  uint32_t instructions;  // bytes; 0 = not known
  std::string name_text;
  std::string file_text;
  std::string line_table;
  std::vector<LineRange> ranges;
  bool has_ranges = false;
  bool runs_handles = false;   // asyncio's Handle._run
  bool runs_loop = false;      // its BaseEventLoop.run_forever
  bool begins_thread = false;  // threading's Thread._bootstrap
  bool awaits_group = false;   // what awaits the tasks of its TaskGroup
  uint32_t name_number = 0;    // of the texts, in the process's names; 0 = not asked so far
  uint32_t file_number = 0;
};

// In a free-threaded build each thread runs a copy of a code's instructions that is its own, from the second thread on.
struct CodeCopy {
  uintptr_t code;
  uint32_t number;
  uintptr_t begin;  // of its instructions; 0 = not known

  bool operator==(const CodeCopy &other) const { return code == other.code && number == other.number; }
  bool operator<(const CodeCopy &other) const {
    return code != other.code ? code < other.code : number < other.number;
  }
};

class PythonCodes {
 public:
  static constexpr uint32_t kNone = 0xffffffff;
  explicit PythonCodes(const PythonRuntime &python) : python_(python) {}

  //! Looks at code objects, all at once: `numbers[i]` becomes that of addresses[i], or kNone where no code is now. Throws bad_alloc.
  void look(const uintptr_t *addresses, uint32_t *numbers, size_t count);

  //! Finds where copies begin, all at once.
  void look_at_copies(CodeCopy *copies, size_t count) const;

  const PythonCode &code(uint32_t number) const { return codes_[number]; }

  //! As a frame of the tree of stacks; `offset`: of the instruction, bytes. Throws bad_alloc.
  Frame frame(ProcessLog &log, uint32_t number, int64_t offset);

  //! The line of an instruction; 0 = none. Throws bad_alloc.
  uint32_t line(uint32_t number, int64_t offset);

 private:
  struct Seen {
    uintptr_t type, name, file, lines;
    int64_t size;
    int32_t first_line;
  };
  Seen parse(const char *bytes) const;
  uint32_t number_of(uintptr_t address, const Seen &seen);

  const PythonRuntime &python_;
  std::vector<PythonCode> codes_;
  std::unordered_map<uintptr_t, uint32_t> numbers_;  // by address: the latest there
};

}  // namespace warplens::agent
