// Calls of the C library, as the wrappers of the larger stub hand them over.
#include "agent/hooks/cpu.h"

namespace warpline::agent {

extern const CpuSource kOsCallSource{kCpuOsCalls | kCpuFileAccess, nullptr, nullptr, nullptr, nullptr};

}  // namespace warpline::agent
