// The agent's life in one process: prepared when a tool interface loads it, started at the first event or by warplens_start,
// renewed after fork.
#pragma once

#include "warplens/format.h"

namespace warplens::agent {

//! [MT] Reads the configuration, once. Callbacks may be installed afterwards; false when memory is out.
bool prepare();

//! What is left to do when the process, or what it watches, has ended.
void finish_session();

//! [MT] warplens_start and warplens_stop.
int start_recording(const char *directory);
int stop_recording();

//! [MT] warplens_profiler_start and warplens_profiler_stop.
int profiler_start();
int profiler_stop();

//! [MT] The control file of the recording that runs or begins with the next event; null without one. Stays mapped.
ControlPage *control_page();

//! Whether the caller is a child of vfork, or the like: another process in our memory.
bool is_guest();

//! Whether the process is one that a fork made, and that has not noticed.
bool is_unnoticed_child();

//! [MT] Another NVTX tool was configured before us: a client's calls reach it too, or they do not.
void count_chained(bool reached);

}  // namespace warplens::agent
