// Reads a stack that changes while it is read.
// Everything is copied twice in one system call. What is equal in both copies stood still in
// between, and a frame whose caller stood still is really called by it.
#include "reader.h"

#include <algorithm>
#include <cstring>

#include "agent/python/sampling/tasks.h"
#include "handles.h"
#include "interpreters.h"
#include "memory.h"

namespace warplens::agent {
namespace {

constexpr size_t kMostFrames = 2048;
constexpr size_t kMostThreads = 8192;
constexpr size_t kMostChunk = size_t{1} << 20;
constexpr size_t kChunkHead = 24;     // previous, size, top
constexpr size_t kMostState = 1024;   // of a thread state, up to the last field that we read
constexpr size_t kSlack = 2048;       // frames that may have come since the last look
constexpr size_t kMostOutside = 512;  // frames outside of chunks that are looked for in advance
constexpr size_t kMostFetched = 768;  // that are then read one by one
constexpr int kAttempts = 4;
constexpr size_t kMostHandlers =
    16;  // generators and coroutines around each other, that are asked for exceptions
constexpr uint32_t kHandlerWords = 4;
constexpr uint8_t kOwnedByGenerator = 1;
constexpr uint8_t kOwnedByC = 3;  // and above: no function, but where C entered the evaluation loop
constexpr uintptr_t kTags = 7;    // 3.14: of a reference in a frame

template <typename T>
T field(const char *bytes, uint32_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof(value));
  return value;
}

}  // namespace

size_t PythonReader::frame_size() const {
  const PythonLayout &at = python_.at;
  return at.frame_owner != kNoOffset ? at.frame_locals : at.frame_instruction + sizeof(uintptr_t);
}

RawFrame PythonReader::parse(const char *bytes) const {
  const PythonLayout &at = python_.at;
  RawFrame raw{};
  raw.code = field<uintptr_t>(bytes, at.frame_code) & ~kTags;
  raw.previous = field<uintptr_t>(bytes, at.frame_previous);
  if (at.frame_owner != kNoOffset) {
    raw.instruction = field<uintptr_t>(bytes, at.frame_instruction);
    raw.owner = field<uint8_t>(bytes, at.frame_owner);
    raw.copy = at.frame_copy != kNoOffset ? field<uint32_t>(bytes, at.frame_copy) : 0;
    raw.is_entry = at.frame_entry != kNoOffset && field<uint8_t>(bytes, at.frame_entry) != 0;
  } else {
    raw.instruction = static_cast<uintptr_t>(int64_t{field<int32_t>(bytes, at.frame_instruction)});
    raw.is_entry = true;  // each call of 3.10 goes through C
  }
  return raw;
}

bool PythonReader::find_threads(std::vector<PythonThread> &threads) {
  constexpr uint32_t kMost = 64;
  PythonInterpreter interpreters[kMost];
  const PythonLayout &at = python_.at;
  uint32_t count = python_interpreters(python_, interpreters, kMost);
  std::vector<PythonThread> before;
  before.swap(threads);
  for (uint32_t i = 0; i < count; ++i) {
    for (uintptr_t next = interpreters[i].threads; next != 0 && threads.size() < kMostThreads;) {
      PythonThread thread{};
      uintptr_t native = 0;
      bool has_native = at.thread_native != kNoOffset;
      thread.address = next;
      Piece pieces[] = {{&thread.interpreter, thread.address + at.thread_interpreter, 8},
                        {&thread.handle, thread.address + at.thread_handle, 8},
                        {&next, thread.address + at.thread_next, 8},
                        {&native, thread.address + (has_native ? at.thread_native : 0), 8}};
      if (copy_pieces(pieces, 4) != 4 || thread.interpreter != interpreters[i].address) {
        return false;
      }
      thread.tid = tid_of(thread.handle, has_native ? static_cast<uint32_t>(native) : 0);
      for (PythonThread &old : before) {
        if (old.address == thread.address && old.tid == thread.tid) {
          thread.chunk = old.chunk;
          thread.chunk_used = old.chunk_used;
          thread.outside.swap(old.outside);
        }
      }
      threads.push_back(std::move(thread));
    }
  }
  return count != 0;
}

// In the child of a fork, some versions still tell the parent's number.
uint32_t PythonReader::tid_of(uintptr_t handle, uint32_t native) {
  return native != 0 && thread_cpu_ns(native) >= 0 ? native : tid_of_handle(handle);
}

// Copies what the stack of `thread` was made of at the last look, twice, and finds its innermost frame in that.
PythonReader::Result PythonReader::copy(PythonThread &thread, uintptr_t &frame) {
  const PythonLayout &at = python_.at;
  bool has_chunks = at.thread_chunk != kNoOffset;
  bool by_root = at.thread_cframe != kNoOffset;
  uint32_t to_frame = by_root ? at.thread_cframe : at.thread_frame;
  char state[kMostState];
  size_t state_size =
      std::max({at.thread_handle, at.thread_interpreter, to_frame, has_chunks ? at.thread_top : 0}) +
      sizeof(uintptr_t);
  regions_.clear();
  used_ = 0;
  hint_ = 0;
  older_chunk_ = 0;
  frame = 0;
  handles_exception_ = false;
  if (state_size > sizeof(state) || !copy_memory(state, thread.address, state_size) ||
      field<uintptr_t>(state, at.thread_interpreter) != thread.interpreter ||
      field<uintptr_t>(state, at.thread_handle) != thread.handle) {
    return Result::gone;
  }
  auto root = field<uintptr_t>(state, to_frame);
  if (root == 0) {
    return Result::good;  // no Python
  }
  auto chunk = has_chunks ? field<uintptr_t>(state, at.thread_chunk) : 0;
  size_t size = 0;
  auto add = [&](uintptr_t from, size_t bytes) {
    regions_.push_back({from, bytes, size, 0});
    size += bytes;
  };
  if (chunk != 0) {
    // At most up to its end, which is in its head; one that we do not know yet is of the usual size at least.
    size_t used = field<uintptr_t>(state, at.thread_top) - chunk;
    size_t known = thread.chunk == chunk ? thread.chunk_used : 4096;
    if (used >= kChunkHead && used < kMostChunk) {
      add(chunk, std::min(used + kSlack, std::max(known, used)));
    }
  }
  for (uintptr_t address : thread.outside) {
    add(address, frame_size());
  }
  for (Region &region : regions_) {
    region.second = region.first + size;
  }
  used_ = size * 2;
  if (bytes_.size() < size * 2) {
    bytes_.resize(size * 2 + 16384);
  }
  uintptr_t inner[2] = {0, 0};
  pieces_.clear();
  pieces_.push_back({&inner[0], thread.address + to_frame, sizeof(uintptr_t)});
  if (by_root) {
    pieces_.push_back({&inner[1], root + at.cframe_frame, sizeof(uintptr_t)});
  }
  for (const Region &region : regions_) {
    pieces_.push_back({bytes_.data() + region.first, region.from, region.size});
  }
  for (const Region &region : regions_) {
    pieces_.push_back({bytes_.data() + region.second, region.from, region.size});
  }
  // Last: it may be a generator's that is gone.
  auto handler = field<uintptr_t>(state, at.thread_exceptions);
  uintptr_t handler_again = 0, item[kHandlerWords] = {};
  size_t needed = pieces_.size();
  pieces_.push_back({item, handler, sizeof(item)});
  pieces_.push_back({&handler_again, thread.address + at.thread_exceptions, sizeof(handler_again)});
  size_t copied = copy_pieces(pieces_.data(), pieces_.size());
  handles_exception_ = copied == pieces_.size() && handler_again == handler && handles(item);
  if (copied < needed) {
    thread.outside.clear();  // some of it is gone
    thread.chunk = 0;
    return Result::torn;
  }
  frame = by_root ? inner[1] : inner[0];
  thread.chunk = chunk;
  if (chunk != 0 && !regions_.empty() && regions_[0].from == chunk) {
    auto bytes = field<uint64_t>(bytes_.data() + regions_[0].first, at.chunk_size);
    thread.chunk_used = bytes < kMostChunk ? bytes : 0;
    older_chunk_ = field<uintptr_t>(bytes_.data() + regions_[0].first, at.chunk_previous);
  }
  return by_root && inner[0] != root ? Result::torn : Result::good;
}

// Whether an exception is handled: in the innermost generator or coroutine, or in what runs it, up to the thread itself.
bool PythonReader::handles(const uintptr_t *item) const {
  uint32_t previous =
      python_.at.version < 0x030b ? 3 : 1;  // 3.10: type, value, traceback; else the exception alone
  uintptr_t next[kHandlerWords];
  std::memcpy(next, item, sizeof(next));
  for (size_t i = 0; i < kMostHandlers; ++i) {
    if (next[0] != 0 && next[0] != python_.none) {
      return true;
    }
    uintptr_t address = next[previous];
    if (address == 0 || !copy_memory(next, address, sizeof(next))) {
      return false;
    }
  }
  return false;
}

// Offsets are compared, not addresses: what a torn stack points at may be any number.
const char *PythonReader::find(uintptr_t address, size_t &second) const {
  size_t size = frame_size();
  auto is_in = [&](size_t at) {
    return at < regions_.size() && regions_[at].size >= size &&
           address - regions_[at].from <= regions_[at].size - size;
  };
  // Frames that lie alone come in the order in which they are looked for, or the other way round.
  size_t at = is_in(hint_) ? hint_ : is_in(hint_ + 1) ? hint_ + 1 : hint_ - 1;
  if (!is_in(at)) {
    for (at = 0; at < regions_.size() && !is_in(at); ++at) {
    }
  }
  if (at == regions_.size()) {
    return nullptr;
  }
  hint_ = at;
  size_t offset = address - regions_[at].from;
  second = regions_[at].second + offset;
  return bytes_.data() + regions_[at].first + offset;
}

// A frame that was not copied: with the older chunk that it is in, or alone.
const char *PythonReader::fetch(uintptr_t address) {
  size_t size = frame_size();
  Region region{address, size, used_, used_};
  uint64_t head[3] = {0, 0, 0};  // previous, size, top
  if (older_chunk_ != 0 && copy_memory(head, older_chunk_, sizeof(head)) && head[1] <= kMostChunk &&
      head[1] > size && address - older_chunk_ <= head[1] - size) {
    region.from = older_chunk_;
    region.size = head[1];
    older_chunk_ = head[0];
  }
  if (bytes_.size() < used_ + region.size) {
    bytes_.resize(used_ + region.size + 65536);
  }
  if (!copy_memory(bytes_.data() + used_, region.from, region.size)) {
    return nullptr;
  }
  used_ += region.size;
  hint_ = regions_.size();
  regions_.push_back(region);
  return bytes_.data() + region.first + (address - region.from);
}

bool PythonReader::walk(uintptr_t frame, bool &is_cut) {
  size_t fetched = 0;
  raw_.clear();
  while (frame != 0 && raw_.size() < kMostFrames) {
    size_t second = 0;
    if (frame % 8 != 0) {
      return false;
    }
    const char *bytes = find(frame, second);
    if (bytes == nullptr && ++fetched > kMostFetched) {
      break;
    }
    if (bytes == nullptr && (bytes = fetch(frame)) == nullptr) {
      return false;
    }
    RawFrame raw = parse(bytes);
    raw.address = frame;
    raw_.push_back(raw);
    if (raw.previous == frame) {
      return false;
    }
    frame = raw.previous;
  }
  is_cut = frame != 0;
  return true;
}

// How many frames, from the outermost one, are for sure each called by the one before it: callers are at the same call in both copies.
size_t PythonReader::stable() const {
  for (size_t i = raw_.size(); i-- > 0;) {
    size_t second = 0;
    if (find(raw_[i].address, second) == nullptr) {
      continue;  // it was read alone, and cannot be compared
    }
    RawFrame again = parse(bytes_.data() + second);
    bool same = again.code == raw_[i].code && again.previous == raw_[i].previous &&
                again.copy == raw_[i].copy && (i == 0 || again.instruction == raw_[i].instruction);
    if (!same) {
      return raw_.size() - i;
    }
  }
  return raw_.size() + 1;
}

void PythonReader::remember(PythonThread &thread) const {
  thread.outside.clear();
  bool has_chunks = python_.at.thread_chunk != kNoOffset;
  for (const RawFrame &raw : raw_) {
    bool in_chunk = false;
    for (size_t i = 0; has_chunks && i < regions_.size() && !in_chunk; ++i) {
      in_chunk = regions_[i].size > frame_size() && raw.address - regions_[i].from < regions_[i].size;
    }
    if (!in_chunk && thread.outside.size() < kMostOutside) {
      thread.outside.push_back(raw.address);
    }
  }
}

// The task whose coroutine is run by raw_[at], a Handle._run: its frame is in the coroutine itself.
void PythonReader::find_task(size_t at, PythonStack &stack) const {
  uintptr_t handle = 0;
  size_t inner = at;
  do {
    if (inner == 0) {
      return;
    }
  } while (raw_[--inner].owner >= kOwnedByC);
  if (raw_[inner].owner != kOwnedByGenerator || python_.at.generator_frame == kNoOffset ||
      !copy_memory(handle, raw_[at].address + python_.at.frame_locals)) {
    return;
  }
  uintptr_t coroutine = raw_[inner].address - python_.at.generator_frame;
  if (read_task_name(python_, handle & ~kTags, coroutine, stack.task)) {
    stack.coroutine = coroutine;
    stack.coroutine_from = stack.frames.size() + 1;
  } else {
    stack.task.clear();
  }
}

// The loop that raw_[at] runs is its first argument.
void PythonReader::find_loop(size_t at, PythonStack &stack) const {
  uintptr_t loop = 0, globals = 0;
  if (!copy_memory(loop, raw_[at].address + python_.at.frame_locals) ||
      (python_.at.frame_globals != kNoOffset &&
       !copy_memory(globals, raw_[at].address + python_.at.frame_globals))) {
    return;
  }
  stack.loop = loop & ~kTags;
  stack.globals = globals;
}

// Where the copies of code begin that the frames run. They are asked for each time: they come and go with threads.
void PythonReader::look_at_copies(const RawFrame *frames, size_t count) {
  copies_.clear();
  for (size_t i = 0; i < count; ++i) {
    if (frames[i].copy != 0 && frames[i].owner < kOwnedByC) {
      copies_.push_back({frames[i].code, frames[i].copy, 0});
    }
  }
  std::sort(copies_.begin(), copies_.end());
  copies_.erase(std::unique(copies_.begin(), copies_.end()), copies_.end());
  codes_.look_at_copies(copies_.data(), copies_.size());
}

// Of its instruction in its code, bytes.
int64_t PythonReader::offset_of(const RawFrame &raw) const {
  if (python_.at.code_instructions == kNoOffset) {
    return static_cast<int64_t>(raw.instruction) * 2;
  }
  uintptr_t begin = raw.code + python_.at.code_instructions;
  if (raw.copy != 0) {
    auto copy = std::lower_bound(copies_.begin(), copies_.end(), CodeCopy{raw.code, raw.copy, 0});
    begin = copy != copies_.end() && *copy == CodeCopy{raw.code, raw.copy, 0} ? copy->begin : 0;
  }
  return static_cast<int64_t>(raw.instruction - begin);
}

bool PythonReader::is_in_code(uint32_t number, int64_t offset) const {
  return python_.at.code_instructions == kNoOffset ||
         (offset >= -2 && offset <= codes_.code(number).instructions);
}

bool PythonReader::resolve(const RawFrame &raw, PythonFrame &frame) {
  uint32_t number = PythonCodes::kNone;
  codes_.look(&raw.code, &number, 1);
  if (number == PythonCodes::kNone) {
    return false;
  }
  look_at_copies(&raw, 1);
  int64_t offset = offset_of(raw);
  frame = {number, static_cast<int32_t>(offset), false};
  return is_in_code(number, offset);
}

// Frames into codes and instructions, from raw_[innermost] outwards.
PythonReader::Result PythonReader::resolve(size_t innermost, PythonStack &stack) {
  addresses_.clear();
  for (size_t i = innermost; i < raw_.size(); ++i) {
    if (raw_[i].owner < kOwnedByC) {
      addresses_.push_back(raw_[i].code);
    }
  }
  std::sort(addresses_.begin(), addresses_.end());
  addresses_.erase(std::unique(addresses_.begin(), addresses_.end()), addresses_.end());
  numbers_.assign(addresses_.size(), PythonCodes::kNone);
  codes_.look(addresses_.data(), numbers_.data(), addresses_.size());
  look_at_copies(raw_.data() + innermost, raw_.size() - innermost);
  stack.frames.clear();
  stack.task.clear();
  stack.loop = stack.globals = stack.coroutine = stack.thread = 0;
  stack.opcode = kNoOpcode;
  uintptr_t instruction = 0;
  bool entered = true;
  for (size_t i = raw_.size(); i-- > innermost;) {
    const RawFrame &raw = raw_[i];
    if (raw.owner >= kOwnedByC) {
      entered = true;
      continue;
    }
    size_t at = static_cast<size_t>(std::lower_bound(addresses_.begin(), addresses_.end(), raw.code) -
                                    addresses_.begin());
    uint32_t number = numbers_[at];
    if (number == PythonCodes::kNone) {
      return Result::torn;
    }
    if (codes_.code(number).name == codes_.code(number).file) {
      continue;  // made by the interpreter for itself: what cleans up after an __init__ that it entered directly
    }
    int64_t offset = offset_of(raw);
    if (!is_in_code(number, offset)) {
      return Result::torn;  // its instruction is not in its code
    }
    if (codes_.code(number).runs_handles) {
      find_task(i, stack);
    } else if (codes_.code(number).runs_loop) {
      find_loop(i, stack);
    } else if (codes_.code(number).begins_thread) {
      uintptr_t self = 0;
      stack.thread = copy_memory(self, raw.address + python_.at.frame_locals) ? self & ~kTags : 0;
    }
    stack.frames.push_back({number, static_cast<int32_t>(offset), raw.is_entry || entered});
    instruction = raw.instruction;
    entered = false;
  }
  if (wants_opcodes_ &&
      innermost == 0) {  // else a caller is the innermost, which was in the middle of its call
    read_opcode(instruction, stack);
  }
  return Result::good;
}

// The first byte of the instruction, which is in the code object that was looked at.
void PythonReader::read_opcode(uintptr_t instruction, PythonStack &stack) const {
  uint8_t opcode = 0;
  if (!stack.frames.empty() && stack.frames.back().offset >= 0 && copy_memory(opcode, instruction)) {
    stack.opcode = opcode;
  }
}

PythonReader::Result PythonReader::attempt(PythonThread &thread, PythonStack &stack, bool last_one) {
  uintptr_t frame = 0;
  stack.frames.clear();
  stack.is_cut = false;
  stack.handles_exception = false;
  if (Result copied = copy(thread, frame); copied != Result::good) {
    return copied;
  }
  if (!walk(frame, stack.is_cut)) {
    return Result::torn;
  }
  stack.handles_exception = handles_exception_;
  size_t sure = stable();
  remember(thread);
  if (sure > raw_.size()) {
    return resolve(0, stack);
  }
  // The last time we keep what is sure, and the one frame that its caller is sure to have called.
  return last_one ? resolve(raw_.size() - sure, stack) : Result::torn;
}

bool PythonReader::read(PythonThread &thread, PythonStack &stack) {
  for (int i = 1; i <= kAttempts; ++i) {
    Result result = attempt(thread, stack, i == kAttempts);
    if (result != Result::torn) {
      return result == Result::good;
    }
    ++detected_;
  }
  ++given_up_;
  stack.frames.clear();
  return false;
}

bool PythonReader::read(uint32_t tid, PythonStack &stack) {
  auto is_it = [&](const PythonThread &thread) { return thread.tid == tid; };
  auto found = std::find_if(known_.begin(), known_.end(), is_it);
  if (found == known_.end()) {
    if (!find_threads(known_) ||
        (found = std::find_if(known_.begin(), known_.end(), is_it)) == known_.end()) {
      return false;
    }
  }
  return read(*found, stack);
}

uint32_t PythonReader::node(ProcessLog &log, const PythonStack &stack) {
  if (last_generation_ != log.generation()) {
    last_generation_ = log.generation();
    last_frames_.clear();
    last_nodes_.clear();
  }
  size_t same = 0;
  while (same < stack.frames.size() && same < last_frames_.size() &&
         stack.frames[same] == last_frames_[same]) {
    ++same;
  }
  last_frames_.resize(same);
  last_nodes_.resize(same);
  uint32_t node = same != 0 ? last_nodes_.back() : 0;
  for (size_t i = same; i < stack.frames.size(); ++i) {
    const PythonFrame &frame = stack.frames[i];
    uint32_t next = stack_node(log, node, codes_.frame(log, frame.code, frame.offset));
    if (next == 0) {
      break;  // no room
    }
    node = next;
    last_frames_.push_back(frame);
    last_nodes_.push_back(node);
  }
  return node;
}

}  // namespace warplens::agent
