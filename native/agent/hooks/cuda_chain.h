// Loads the tool that CUDA_INJECTION64_PATH named before the agent took its place.
// The driver takes one name, and the agent's is in its place.
#pragma once

namespace warplens::agent {

//! Lets the tool that WARPLENS_CUDA_CHAIN names set itself up, as the driver would have done; once. It comes before us and keeps what it
//! had without us: where CUPTI serves one tool only, that is it, and the recording says so.
void start_other_cuda_tool();

}  // namespace warplens::agent
