// The interface of the source that walks stacks, for sources that need a call's stack.
#pragma once

#include <atomic>
#include <cstdint>

#include "spool/process_log.h"

namespace warplens::agent {

//! [MT] The calling thread's stack, its innermost `depth` frames, as a number in the tree of stacks (stacks.h); 0 = none. Some 10 us. The
//! caller holds Busy, and no lock. Keeps errno.
using Unwinder = uint32_t (*)(ProcessLog &log, uint32_t depth);

//! Null: nobody can.
inline std::atomic<Unwinder> g_unwinder{nullptr};

}  // namespace warplens::agent
