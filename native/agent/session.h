// The agent's life in one process: prepared when a tool interface loads it, started at the first event or by warpline_start,
// renewed after fork.
#pragma once

namespace warpline::agent {

//! [MT] Reads the configuration, once. Callbacks may be installed afterwards; false when memory is out.
bool prepare();

//! [MT] warpline_start and warpline_stop.
int start_recording(const char *directory);
int stop_recording();

//! [MT] Another NVTX tool was configured before us: a client's calls reach it too, or they do not.
void count_chained(bool reached);

}  // namespace warpline::agent
