// The tree of stacks of one process: each distinct stack is written once, and then called by the number of its innermost frame.
#pragma once

#include <string_view>

#include "spool/process_log.h"
#include "warplens/cpu_records.h"

namespace warplens::agent {

// One frame as it goes into the tree. Frames are the same when all of this is.
struct Frame {
  FrameKind kind = FrameKind::native;
  uint8_t flags = 0;  // kReturnAddress
  uint32_t name = 0;  // a text of the process's names, as are those below; of native code 0
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t first_line = 0;
  uint32_t module = 0;
  uint64_t address = 0;
  uint64_t offset = 0;
};

//! [MT] The number of the stack that is `frame` called by `parent` (0: by nobody) in `log`; written where it is new. 0 where there is
//! no room for it. The caller holds Busy.
uint32_t stack_node(ProcessLog &log, uint32_t parent, const Frame &frame);

//! [FORK] In a child: another thread may have been in the middle of adding one.
void renew_stacks();

}  // namespace warplens::agent
