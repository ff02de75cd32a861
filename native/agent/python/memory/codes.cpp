// Reads code objects.
// A code object may be freed and another take its address, so each is read whenever it is in a stack.
#include "codes.h"

#include <algorithm>
#include <cstring>

#include "memory.h"
#include "texts.h"

namespace warplens::agent {
namespace {

constexpr size_t kMostBytes = 256;  // of a code object, up to the last field that we read
constexpr size_t kMostLines = size_t{4} << 20;
constexpr size_t kMostCodes = 50'000;
constexpr size_t kInBatch = 32;

template <typename T>
T field(const char *bytes, uint32_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof(value));
  return value;
}

}  // namespace

PythonCodes::Seen PythonCodes::parse(const char *bytes) const {
  const PythonLayout &at = python_.at;
  Seen seen{};
  uint32_t name = at.code_qualified_name != kNoOffset ? at.code_qualified_name : at.code_name;
  seen.type = field<uintptr_t>(bytes, at.object_type);
  seen.name = field<uintptr_t>(bytes, name);
  seen.file = field<uintptr_t>(bytes, at.code_file);
  seen.lines = field<uintptr_t>(bytes, at.code_lines);
  seen.first_line = field<int32_t>(bytes, at.code_first_line);
  seen.size = at.code_instructions != kNoOffset ? field<int64_t>(bytes, at.bytes_size) : 0;
  return seen;
}

void PythonCodes::look(const uintptr_t *addresses, uint32_t *numbers, size_t count) {
  const PythonLayout &at = python_.at;
  size_t size = std::max({at.code_lines, at.code_name, at.code_file}) + sizeof(uintptr_t);
  if (at.code_qualified_name != kNoOffset) {
    size = std::max<size_t>(size, at.code_qualified_name + sizeof(uintptr_t));
  }
  char bytes[kInBatch][kMostBytes];
  size = std::min(size, kMostBytes);
  for (size_t first = 0; first < count;) {
    size_t in_batch = std::min(count - first, kInBatch);
    Piece pieces[kInBatch];
    for (size_t i = 0; i < in_batch; ++i) {
      pieces[i] = {bytes[i], addresses[first + i], size};
    }
    size_t done = copy_pieces(pieces, in_batch);
    for (size_t i = 0; i < done; ++i) {
      numbers[first + i] = number_of(addresses[first + i], parse(bytes[i]));
    }
    first += done;
    if (done < in_batch) {
      numbers[first++] = kNone;
    }
  }
}

void PythonCodes::look_at_copies(CodeCopy *copies, size_t count) const {
  constexpr uint32_t kMostCopies = 1 << 20;
  const PythonLayout &at = python_.at;
  for (size_t first = 0; first < count && at.code_copies != kNoOffset; first += kInBatch) {
    size_t in_batch = std::min(count - first, kInBatch);
    uintptr_t lists[kInBatch] = {};
    int64_t sizes[kInBatch] = {};
    Piece pieces[kInBatch * 2];
    for (size_t i = 0; i < in_batch; ++i) {
      pieces[i] = {&lists[i], copies[first + i].code + at.code_copies, sizeof(uintptr_t)};
    }
    size_t done = copy_pieces(pieces, in_batch);
    for (size_t i = 0; i < done; ++i) {
      uint32_t number = std::min(copies[first + i].number, kMostCopies);
      pieces[i * 2] = {&sizes[i], lists[i], sizeof(int64_t)};
      pieces[i * 2 + 1] = {&copies[first + i].begin, lists[i] + sizeof(int64_t) + number * sizeof(uintptr_t),
                           sizeof(uintptr_t)};
    }
    size_t read = copy_pieces(pieces, done * 2) / 2;
    for (size_t i = 0; i < in_batch; ++i) {
      CodeCopy &copy = copies[first + i];
      if (i >= read || static_cast<int64_t>(copy.number) >= sizes[i]) {
        copy.begin = 0;
      }
    }
  }
}

uint32_t PythonCodes::number_of(uintptr_t address, const Seen &seen) {
  if (seen.type != python_.code_type || seen.size < 0 || seen.size > (1 << 28)) {
    return kNone;
  }
  auto known = numbers_.find(address);
  if (known != numbers_.end()) {
    const PythonCode &code = codes_[known->second];
    if (code.name == seen.name && code.file == seen.file && code.lines == seen.lines &&
        code.first_line == seen.first_line && code.instructions == seen.size * 2) {
      return known->second;
    }
  }
  if (codes_.size() >= kMostCodes) {
    return kNone;
  }
  PythonCode code{};
  code.name = seen.name;
  code.file = seen.file;
  code.lines = seen.lines;
  code.first_line = seen.first_line;
  code.instructions = static_cast<uint32_t>(seen.size * 2);
  if (!read_text(python_, seen.name, code.name_text) || !read_text(python_, seen.file, code.file_text)) {
    return kNone;
  }
  code.runs_handles = code.name_text == "Handle._run" && code.file_text.ends_with("asyncio/events.py");
  code.runs_loop =
      code.name_text == "BaseEventLoop.run_forever" && code.file_text.ends_with("asyncio/base_events.py");
  code.begins_thread = (code.name_text == "Thread._bootstrap" || code.name_text == "_bootstrap") &&
                       code.file_text.ends_with("/threading.py");
  code.awaits_group = (code.name_text == "TaskGroup.__aexit__" || code.name_text == "TaskGroup._aexit") &&
                      code.file_text.ends_with("asyncio/taskgroups.py");
  read_bytes(python_, seen.lines, kMostLines, code.line_table);  // without it there are no lines
  auto number = static_cast<uint32_t>(codes_.size());
  codes_.push_back(std::move(code));
  numbers_[address] = number;
  return number;
}

uint32_t PythonCodes::line(uint32_t number, int64_t offset) {
  PythonCode &code = codes_[number];
  if (!code.has_ranges) {
    const auto *table = reinterpret_cast<const uint8_t *>(code.line_table.data());
    code.ranges = decode_lines(python_.at.version, code.first_line, table, code.line_table.size());
    std::string().swap(code.line_table);
    code.has_ranges = true;
  }
  auto first_line = static_cast<uint32_t>(std::max(code.first_line, 0));
  return line_at(code.ranges, offset, first_line);
}

Frame PythonCodes::frame(ProcessLog &log, uint32_t number, int64_t offset) {
  Frame frame;
  frame.kind = FrameKind::python;
  frame.line = line(number, offset);
  PythonCode &code = codes_[number];
  if (code.name_number == 0) {
    code.name_number = log.intern(code.name_text);
    code.file_number = log.intern(code.file_text);
  }
  frame.name = code.name_number;
  frame.file = code.file_number;
  frame.first_line = static_cast<uint32_t>(std::max(code.first_line, 0));
  return frame;
}

}  // namespace warplens::agent
