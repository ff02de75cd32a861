// Reads the names of an interpreter's instructions.
#pragma once

#include <cstdint>

namespace warplens::agent {

//! [MT] What the interpreter calls its instructions, a line each: the value of CpuNotice::opcode, a space, the name. Null as long as it
//! was not asked; then it stays.
const char *opcode_names();

}  // namespace warplens::agent
