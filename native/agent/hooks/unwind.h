// Where the stack of a call comes from: of a source that can walk stacks, if there is one.
#pragma once

#include <atomic>
#include <cstdint>

#include "spool/process_log.h"

namespace warpline::agent {

//! [MT] Writes the return addresses of the calling thread's stack, innermost first, as a blob (CudaBacktraceRecord::frames); its
//! offset in the file, 0 = none. The caller holds Busy, and no lock.
using Unwinder = uint64_t (*)(ProcessLog &log);

//! Null: nobody can.
inline std::atomic<Unwinder> g_unwinder{nullptr};

}  // namespace warpline::agent
