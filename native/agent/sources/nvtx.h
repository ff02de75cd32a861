// The NVTX source: installs the agent's callbacks into one NVTX client (a DSO with its own function table).
#pragma once

#include "drivers/nvtx.h"

namespace warpline::agent {

//! [MT] 1 when the client's calls are recorded from now on, 0 when they are not; NVTX calls it once per DSO.
int install_nvtx(NvtxGetExportTableFunc_t get_export_table);

}  // namespace warpline::agent
