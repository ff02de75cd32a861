// Finds the callers of a thread: by the unwind tables of the code, or by frame pointers where it has none.
#pragma once

#include "modules.h"
#include "row_cache.h"
#include "stack_view.h"

namespace warplens::agent {

struct NativeFrame {
  uint64_t address;
  const Mapping *mapping;  // null: of nothing that is known
  uint64_t sp;             // the callee's end: rises from frame to frame
  bool is_return;          // behind a call
};

enum class Reached : uint8_t { end, depth, lost };

//! Writes at most `most` frames, innermost first; how many. `reached` says why there are no more of them: the outermost one is there, there
//! was no more room, or the next one could not be found. `mappings` must hold still.
size_t unwind(const MappingView &mappings, RowCache &rows, const StackView &stack, Registers registers,
              NativeFrame *frames, size_t most, Reached *reached);

//! The process's.
RowCache &row_cache();

//! [FORK] See renew_modules().
void renew_rows();

}  // namespace warplens::agent
