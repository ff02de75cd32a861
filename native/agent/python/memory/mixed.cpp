// Merges Python frames into a native stack.
// Frames of the evaluation loop are matched with entries into it, from the side that is certain.
#include "mixed.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "agent/unwind/frame_tables.h"

namespace warplens::agent {
namespace {

constexpr char kEval[] = "_PyEval_EvalFrameDefault";
constexpr char kColdEval[] = "_PyEval_EvalFrameDefault.cold";

// The other piece of a function that the compiler split, where no symbol says: jumps lead into the middle of it. Jumps that leave a
// function otherwise lead to where another one begins.
#ifdef __x86_64__
CodePiece other_piece(const ElfImage &image, const ElfImage::Symbol &function) {
  constexpr size_t kMostBytes = 256 << 10;
  constexpr uint8_t kJump = 0xe9, kTwoBytes = 0x0f, kConditional = 0x80;
  CodePiece best;
  std::vector<uint8_t> bytes(std::min<size_t>(function.size, kMostBytes));
  if (!image.read(function.address, bytes.data(), bytes.size())) {
    return best;
  }
  size_t most = 0;
  std::map<uint64_t, size_t> votes;  // of bytes that are no jump few fit, each to another place
  for (size_t i = 1; i + 5 <= bytes.size(); ++i) {
    bool jumps = bytes[i] == kJump || (bytes[i - 1] == kTwoBytes && (bytes[i] & 0xf0) == kConditional);
    int32_t distance = 0;
    std::memcpy(&distance, &bytes[i + 1], sizeof(distance));
    uint64_t target = function.address + i + 5 + static_cast<uint64_t>(int64_t{distance});
    if (!jumps || target - function.address < function.size) {
      continue;
    }
    CodePiece piece = find_piece(image, target);
    if (piece.size != 0 && piece.begin != target && ++votes[piece.begin] > most) {
      most = votes[piece.begin];
      best = piece;
    }
  }
  return best;
}
#else
CodePiece other_piece(const ElfImage &, const ElfImage::Symbol &) {
  return {};  // native stacks have no tables to be walked by there
}
#endif

// The frames of Python, outermost first, cut where C code entered the evaluation loop anew.
class Entries {
 public:
  explicit Entries(const PythonStack &python) : python_(python) {
    for (size_t i = 0; i < python.frames.size(); ++i) {
      if (i == 0 || python.frames[i].is_entry) {
        begins_.push_back(i);
      }
    }
  }

  size_t count() const { return begins_.size(); }
  const PythonFrame *begin(size_t entry) const { return &python_.frames[begins_[entry]]; }
  const PythonFrame *end(size_t entry) const {
    return python_.frames.data() + (entry + 1 < begins_.size() ? begins_[entry + 1] : python_.frames.size());
  }

 private:
  const PythonStack &python_;
  std::vector<size_t> begins_;
};

// One frame of either kind.
struct Either {
  const NativeFrame *native;
  const PythonFrame *python;
};

// Outermost first.
std::vector<Either> merge(const NativeFrame *frames, size_t count, const EvalCode &eval,
                          const Entries &entries, size_t evaluations, bool outermost_is_there) {
  std::vector<Either> merged;
  size_t entry = 0;
  auto enter = [&] {
    for (const PythonFrame *frame = entries.begin(entry); frame != entries.end(entry); ++frame) {
      merged.push_back({nullptr, frame});
    }
    ++entry;
  };
  // Where native frames are missing, the entries that nothing is left of come first; where Python's are, evaluations stay as they are.
  size_t plain = 0;
  if (!outermost_is_there) {
    while (entries.count() - entry > evaluations) {
      enter();
    }
    plain = evaluations - (entries.count() - entry);
  }
  for (size_t i = count; i-- > 0;) {
    const bool evaluates = eval.holds(frames[i]);
    if (evaluates && plain == 0 && entry < entries.count()) {
      enter();
      continue;
    }
    plain -= evaluates && plain > 0 ? 1 : 0;
    merged.push_back({&frames[i], nullptr});
  }
  return merged;
}

Frame native_frame(ProcessLog &log, const NativeFrame &native) {
  Frame frame;
  frame.flags = native.is_return ? kReturnAddress : 0;
  frame.address = native.address;
  if (native.mapping != nullptr) {
    modules().write(log, *native.mapping);
    frame.module = native.mapping->module->number;
    frame.offset = native.address - native.mapping->bias;
  }
  return frame;
}

}  // namespace

bool find_eval_code(const PythonRuntime &python, const MappingView &mappings, EvalCode *code) {
  // Its data lie behind its code.
  const Mapping *nearest = nullptr;
  for (const Mapping &mapping : mappings.mappings) {
    if (mapping.begin < python.address) {
      nearest = &mapping;
    }
  }
  const ElfImage *image = nearest != nullptr ? nearest->module->image() : nullptr;
  if (image == nullptr) {
    return false;
  }
  ElfImage::Symbol eval = image->find(kEval);
  if (eval.size == 0) {
    return false;
  }
  ElfImage::Symbol cold = image->find(kColdEval);
  if (cold.size == 0) {  // of a file without local symbols
    CodePiece piece = other_piece(*image, eval);
    cold = {piece.begin, piece.size};
  }
  code->begin = eval.address + nearest->bias;
  code->end = code->begin + eval.size;
  code->cold_begin = cold.address + nearest->bias;
  code->cold_end = code->cold_begin + cold.size;
  return true;
}

uint32_t write_mixed(ProcessLog &log, const NativeFrame *frames, size_t count, bool whole,
                     const EvalCode &eval, const PythonStack &python, PythonCodes *codes, size_t depth,
                     bool *fits) {
  const Entries entries(python);
  auto evaluations = static_cast<size_t>(
      std::count_if(frames, frames + count, [&](const NativeFrame &frame) { return eval.holds(frame); }));
  const bool outermost_is_there = whole && !python.is_cut;
  *fits = !outermost_is_there || evaluations == entries.count();
  const std::vector<Either> merged = merge(frames, count, eval, entries, evaluations, outermost_is_there);
  uint32_t stack = 0;
  for (size_t i = merged.size() > depth ? merged.size() - depth : 0; i < merged.size(); ++i) {
    const PythonFrame *frame = merged[i].python;
    uint32_t node = stack_node(log, stack,
                               frame != nullptr ? codes->frame(log, frame->code, frame->offset)
                                                : native_frame(log, *merged[i].native));
    stack = node != 0 ? node : stack;
  }
  return stack;
}

}  // namespace warplens::agent
