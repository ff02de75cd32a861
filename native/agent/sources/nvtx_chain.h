// A second NVTX tool, configured before us: its functions are called too. Nothing of this runs where there is none.
#pragma once

#include "nvtx.h"
#include "warpline/warpline.h"

namespace warpline::agent {

//! Fills the client's tables as install_nvtx does, together with the other tool if WARPLINE_NVTX_CHAIN names one.
int install_nvtx_with_others(NvtxGetExportTableFunc_t get_export_table);
int install_nvtx_extension_with_others(nvtxExtModuleInfo_t *module);

//! The tasks of warpline.nvtx, whose domains and ranges are the other tool's too.
const WarplineTasks *tasks_with_others(const WarplineTasks &ours);

}  // namespace warpline::agent
