// The agent's life in one process: prepared when a tool interface loads it, started at the first event, renewed after fork.
#pragma once

namespace warpline::agent {

//! [MT] Reads the configuration, once; false when the process is not to be recorded (WARPLINE_SPOOL is not set).
bool prepare();

}  // namespace warpline::agent
