// Replaces the interpreter's native frames by Python frames: one stack of a thread that runs both.
#pragma once

#include "agent/unwind/unwinder.h"
#include "reader.h"

namespace warplens::agent {

// Where the interpreter evaluates: a frame of this function is a frame of Python, and those that it went on to without a call in C.
struct EvalCode {
  uint64_t begin = 0, end = 0;            // addresses of the function
  uint64_t cold_begin = 0, cold_end = 0;  // and of what the compiler moved out of it

  bool holds(const NativeFrame &frame) const {
    uint64_t at = frame.address - (frame.is_return ? 1 : 0);
    return at - begin < end - begin || at - cold_begin < cold_end - cold_begin;
  }
};

//! Finds it in the file that holds the interpreter; false where it is not there.
bool find_eval_code(const PythonRuntime &python, const MappingView &mappings, EvalCode *code);

//! Writes `count` native frames, innermost first, with those of `python` in between; the stack's number. `whole`: they go back to the
//! thread's beginning. Only the innermost `depth` of them all. `codes` may be null where `python` is empty. `*fits` is false where the
//! two tell of different moments. Throws bad_alloc. The caller holds Busy.
uint32_t write_mixed(ProcessLog &log, const NativeFrame *frames, size_t count, bool whole,
                     const EvalCode &eval, const PythonStack &python, PythonCodes *codes, size_t depth,
                     bool *fits);

}  // namespace warplens::agent
