// Stacks of Python, by the clock.
#include "agent/hooks/cpu.h"

namespace warpline::agent {

extern const CpuSource kPythonSampler{kCpuPythonSamples, nullptr, nullptr, nullptr, nullptr};

}  // namespace warpline::agent
