// Fills the function tables of NVTX's extensions.
// Each library requests them module by module. Any version works: slots never change their meaning,
// and structures contain their size.
#include "extension.h"

#include "agent/session.h"
#include "agent/sources/nvtx/nvtx.h"

namespace warplens::agent {
namespace {

constexpr uint16_t kMemory = 1;
constexpr uint16_t kPayload = 2;
constexpr uint16_t kCounters = 4;

}  // namespace

int install_nvtx_extension(nvtxExtModuleInfo_t *module) {
  if (module == nullptr || module->structSize < offsetof(nvtxExtModuleInfo_t, getExportFunction) ||
      module->segments == nullptr || module->segmentsCount == 0 ||
      module->segments[0].functionSlots == nullptr || !prepare()) {
    return 0;
  }
  Slots slots(module->segments[0].functionSlots, module->segments[0].slotCount);
  switch (module->moduleId) {
    case kMemory:
      fill_memory(slots);
      return 1;
    case kPayload:
      fill_payload(slots);
      fill_time(slots);
      fill_deferred(slots);
      return 1;
    case kCounters:
      fill_counters(slots);
      return 1;
    default:
      return 0;  // a module that we do not know: its calls do nothing
  }
}

}  // namespace warplens::agent
