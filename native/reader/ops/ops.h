// Adds details of framework operators to their ranges.
// Sequence numbers, the forward operator of each backward one, inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "reader/spool/columns.h"

namespace warplens::reader {

// The fields of an operator's record (docs/dev/formats/spool.md).
struct OpFields {
  uint64_t sequence;
  uint32_t shapes;  // positions in the caller's list of strings; UINT32_MAX: none
  uint32_t types;
  bool open;  // it never ended: its sequence number is not known
};

// Of the operators of a slice, in order of start.
struct OpColumns {
  std::vector<uint32_t> row;  // among the ranges of the slice
  Nullable<int64_t> sequence, forward;
  Nullable<int32_t> shapes, types;
  std::vector<uint8_t> backward;
  Coder shape_texts, type_texts;
  void reset(size_t strings);
};

// Finds the pass of each operator, and the forward one of each backward one.
class OpPasses {
 public:
  //! The next operator: the range `id`, row `row` of the slice. False: it belongs to the backward pass, which those within it, that were
  //! written before it, did not know (`late`).
  bool add(OpColumns &columns, uint32_t row, const OpFields &op, int64_t id, uint32_t thread, int64_t start,
           int64_t end, bool late);

 private:
  // The last forward operator with a sequence number. Of very many, the oldest ones give way.
  struct Forward {
    int64_t sequence = -1;
    int64_t id = -1;
  };
  static constexpr size_t kForwards = size_t{1} << 20;

  int64_t forward_of(int64_t sequence) const;
  void note_forward(int64_t sequence, int64_t id);

  std::vector<Forward> forwards_;
  std::unordered_map<uint32_t, int64_t> backward_until_;  // by thread: the end of its last backward operator
};

}  // namespace warplens::reader
