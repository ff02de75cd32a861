// NVTX as a source: filling the function tables of a client.
#pragma once

#include "drivers/itt.h"
#include "drivers/nvtx.h"

namespace warplens::agent {

//! Fills the client's tables; 1 when recording is on, else 0 (then NVTX makes every call a no-op).
int install_nvtx(NvtxGetExportTableFunc_t get_export_table);

//! The same for one module of the extensions.
int install_nvtx_extension(nvtxExtModuleInfo_t *module);

//! Takes the functions of ITT's static part that begin and end tasks, where recording is on.
void install_itt(IttState &state);

}  // namespace warplens::agent
