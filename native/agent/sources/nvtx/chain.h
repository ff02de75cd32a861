// Passes NVTX calls on to a second tool.
// It was configured before the agent. Without such a tool none of this runs.
#pragma once

#include "nvtx.h"
#include "warplens/warplens.h"

namespace warplens::agent {

//! Fills the client's tables as install_nvtx does, together with the other tool if WARPLENS_NVTX_CHAIN names one.
int install_nvtx_with_others(NvtxGetExportTableFunc_t get_export_table);
int install_nvtx_extension_with_others(nvtxExtModuleInfo_t *module);

//! The tasks of warplens.nvtx, whose domains and ranges are the other tool's too.
const WarplensTasks *tasks_with_others(const WarplensTasks &ours);

}  // namespace warplens::agent
