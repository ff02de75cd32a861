// The names that tool interfaces look for in an injected library.
#include "agent/attached.h"
#include "agent/hooks/cuda_chain.h"
#include "agent/hooks/cupti/cupti.h"
#include "agent/sources/nvtx/chain.h"
#include "agent/sources/nvtx/nvtx.h"
#include "warplens/warplens.h"

#define WARPLENS_EXPORT __attribute__((visibility("default")))

extern "C" {

WARPLENS_EXPORT int InitializeInjectionNvtx2(void *get_export_table) {
  int taken =
      warplens::agent::install_nvtx_with_others(reinterpret_cast<NvtxGetExportTableFunc_t>(get_export_table));
  if (taken != 0) {
    warplens::agent::note_attached(get_export_table);
  }
  return taken;
}

// Clients of NVTX 1 and 2 (libnvToolsExt.so.1) ask for this one when the other is missing.
WARPLENS_EXPORT int InitializeInjectionNvtx(void *get_export_table) {
  return InitializeInjectionNvtx2(get_export_table);
}

WARPLENS_EXPORT int InitializeInjectionNvtxExtension(void *module_info) {
  return warplens::agent::install_nvtx_extension_with_others(static_cast<nvtxExtModuleInfo_t *>(module_info));
}

WARPLENS_EXPORT void __itt_api_init(warplens::IttState *state, int) {
  warplens::agent::install_itt(*state);
}

WARPLENS_EXPORT int InitializeInjection(void) {
  warplens::agent::start_other_cuda_tool();
  warplens::agent::start_cupti();
  return 1;
}

}  // extern "C"
