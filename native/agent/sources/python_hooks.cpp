// What Python itself does: the GIL, collections, imports, calls.
#include "agent/hooks/cpu.h"

namespace warpline::agent {

extern const CpuSource kPythonSource{
    kCpuGil | kCpuGc | kCpuImports | kCpuFunctions | kCpuPythonCalls | kCpuPythonEvents, nullptr, nullptr,
    nullptr, nullptr};

}  // namespace warpline::agent
