// Native stacks and thread states, by perf events.
#include "agent/hooks/cpu.h"

namespace warpline::agent {

extern const CpuSource kPerfSource{kCpuNativeSamples | kCpuStates, nullptr, nullptr, nullptr, nullptr};

}  // namespace warpline::agent
