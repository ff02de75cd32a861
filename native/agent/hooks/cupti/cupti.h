// The only place that talks to CUPTI: finds it, subscribes, switches its kinds on and off, and hands what it collects to one source.
// A recording begins and ends by kCuptiHook of agent/session_hook.h.
#pragma once

#include "cupti_source.h"

namespace warplens::agent {

//! The driver starts (InitializeInjection): no context exists yet. Does nothing unless a recording wants CUDA. Once per process.
void start_cupti();

}  // namespace warplens::agent
