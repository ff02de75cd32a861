// The memory extension: heaps, their regions, permissions. In virtual memory the address is the handle, so that a region is
// the same whether it is named by one or the other; what else there is gets numbers.
#include <algorithm>

#include "agent/sources/nvtx/extension/extension.h"
#include "define.h"
#include "objects.h"

namespace warplens::agent {
namespace {

using Domain = nvtxDomainHandle_t;
constexpr uint32_t kCudaArray = 0x11;
constexpr uint32_t kCuArray = 0x12;
// Permissions that CUDA's devices have without being made.
constexpr uint64_t kCudaProcessWide = uint64_t{1} << 60;
constexpr uint64_t kCudaDeviceWide = kCudaProcessWide + 1;

// Elements of a batch, each as long as the batch says; what a shorter one lacks is zero.
template <typename Element>
class Batch {
 public:
  Batch(const void *first, size_t count, size_t stride)
      : first_(static_cast<const char *>(first)), stride_(stride) {
    count_ = first == nullptr || stride == 0 ? 0 : count;
  }
  size_t count() const { return count_; }
  Element operator[](size_t i) const {
    Element element{};
    std::memcpy(&element, first_ + i * stride_, std::min(stride_, sizeof(element)));
    return element;
  }

 private:
  const char *first_;
  size_t count_;
  size_t stride_;
};

struct Region {
  uint64_t handle = 0;
  uint64_t size = 0;
};

// A region that is no range of addresses is written in full.
Region array_region(Domain domain, uint32_t type, const NvtxCudaArrayRange &range, uint64_t heap) {
  Region region{new_handle(domain_of(domain)), 0};
  std::string offset;
  std::string extent;
  uint64_t elements = 1;
  for (int i = 0; i < 3; ++i) {
    offset += (i == 0 ? "[" : ", ") + std::to_string(range.offset[i]);
    extent += (i == 0 ? "[" : ", ") + std::to_string(range.extent[i]);
    elements *= range.extent[i];
  }
  region.size = elements;
  Json json("region");
  json.member("type", type);
  json.member("heap", heap);
  json.member("identifier", number_of(range.array));
  json.word("offset", offset + "]");
  json.word("extent", extent + "]");
  define(domain_of(domain), Kind::region, region.handle, json.close());
  return region;
}

template <typename Do>
void each_region(Domain domain, uint32_t type, const void *elements, size_t count, size_t stride,
                 uint64_t heap, const Do &act) {
  if (type == kCudaArray || type == kCuArray) {
    Batch<NvtxCudaArrayRange> ranges(elements, count, stride);
    for (size_t i = 0; i < ranges.count(); ++i) {
      act(i, array_region(domain, type, ranges[i], heap));
    }
  } else {
    Batch<nvtxMemVirtualRangeDesc_t> ranges(elements, count, stride);
    for (size_t i = 0; i < ranges.count(); ++i) {
      nvtxMemVirtualRangeDesc_t range = ranges[i];
      act(i, Region{number_of(range.ptr), range.size});
    }
  }
}

nvtxMemHeapHandle_t register_heap(Domain domain, const nvtxMemHeapDesc_t *given) {
  return given == nullptr ? nullptr : guarded(nvtxMemHeapHandle_t{nullptr}, [&] {
    auto heap = whole_of(*given, given->structSize);
    nvtxMemVirtualRangeDesc_t range{};
    if (heap.type == NVTX_MEM_TYPE_VIRTUAL_ADDRESS && heap.typeSpecificDesc != nullptr) {
      std::memcpy(&range, heap.typeSpecificDesc, std::min(heap.typeSpecificDescSize, sizeof(range)));
    }
    uint64_t handle = range.ptr != nullptr ? number_of(range.ptr) : new_handle(domain_of(domain));
    std::string name;
    Json json("heap");
    json.member("usage", heap.usage);
    json.member("type", heap.type);
    json.member("identifier", number_of(range.ptr));
    json.member("size", uint64_t{range.size});
    json.member("category", heap.category);
    json.member("name", message_text(static_cast<int32_t>(heap.messageType), heap.message, name)
                            ? name.c_str()
                            : nullptr);
    define(domain_of(domain), Kind::heap, handle, json.close());
    return to_handle<nvtxMemHeapHandle_t>(handle);
  });
}

void register_regions(Domain domain, const nvtxMemRegionsRegisterBatch_t *given) {
  if (given != nullptr) {
    guarded([&] {
      auto batch = whole_of(*given, given->structSize);
      each_region(domain, batch.regionType, batch.regionDescElements, batch.regionCount,
                  batch.regionDescElementSize, number_of(batch.heap), [&](size_t i, Region region) {
                    operate(domain_of(domain), OperationAction::region_register, region.handle, region.size);
                    if (batch.regionHandleElementsOut != nullptr) {
                      batch.regionHandleElementsOut[i] = to_handle<nvtxMemRegionHandle_t>(region.handle);
                    }
                  });
    });
  }
}

void resize_regions(Domain domain, const nvtxMemRegionsResizeBatch_t *given) {
  if (given != nullptr) {
    guarded([&] {
      auto batch = whole_of(*given, given->structSize);
      each_region(domain, batch.regionType, batch.regionDescElements, batch.regionDescCount,
                  batch.regionDescElementSize, 0, [&](size_t, Region region) {
                    operate(domain_of(domain), OperationAction::region_resize, region.handle, region.size);
                  });
    });
  }
}

void unregister_regions(Domain domain, const nvtxMemRegionsUnregisterBatch_t *given) {
  if (given != nullptr) {
    auto batch = whole_of(*given, given->structSize);
    Batch<nvtxMemRegionRef_t> regions(batch.refElements, batch.refCount, batch.refElementSize);
    for (size_t i = 0; i < regions.count(); ++i) {
      uint64_t handle = number_of(regions[i].pointer);
      operate(domain_of(domain), OperationAction::region_unregister, handle);
      forget(domain_of(domain), Kind::region, handle);
    }
  }
}

void name_regions(Domain domain, const nvtxMemRegionsNameBatch_t *given) {
  if (given != nullptr) {
    guarded([&] {
      auto batch = whole_of(*given, given->structSize);
      Batch<nvtxMemRegionNameDesc_t> names(batch.regionElements, batch.regionCount, batch.regionElementSize);
      for (size_t i = 0; i < names.count(); ++i) {
        nvtxMemRegionNameDesc_t one = names[i];
        std::string name;
        Json json("region");
        json.member("identifier", number_of(one.region.pointer));
        json.member("name", message_text(static_cast<int32_t>(one.nameType), one.name, name) ? name.c_str()
                                                                                             : nullptr);
        json.member("category", one.category);
        define(domain_of(domain), Kind::region, number_of(one.region.pointer), json.close());
      }
    });
  }
}

void assign_permissions(Domain domain, const nvtxMemPermissionsAssignBatch_t *given) {
  if (given != nullptr) {
    auto batch = whole_of(*given, given->structSize);
    Batch<nvtxMemPermissionsAssignRegionDesc_t> regions(batch.regionElements, batch.regionCount,
                                                        batch.regionElementSize);
    for (size_t i = 0; i < regions.count(); ++i) {
      nvtxMemPermissionsAssignRegionDesc_t one = regions[i];
      operate(domain_of(domain), OperationAction::permissions_assign, number_of(one.region.pointer),
              one.flags);
    }
  }
}

nvtxMemPermissionsHandle_t define_permissions(Domain domain, uint64_t handle, const char *scope,
                                              int64_t flags) {
  Json json("permissions");
  json.member("scope", scope);
  json.member("flags", flags);
  define(domain_of(domain), Kind::permissions, handle, json.close());
  return to_handle<nvtxMemPermissionsHandle_t>(handle);
}

nvtxMemPermissionsHandle_t create_permissions(Domain domain, int32_t flags) {
  return guarded(nvtxMemPermissionsHandle_t{nullptr},
                 [&] { return define_permissions(domain, new_handle(domain_of(domain)), "own", flags); });
}

template <OperationAction action, typename Handle>
void act(Domain domain, Handle handle) {
  operate(domain_of(domain), action, number_of(handle));
}

void mark_initialized(Domain domain, const void *, uint8_t, const NvtxMarkInitializedBatch *given) {
  if (given != nullptr) {
    guarded([&] {
      auto batch = whole_of(*given, given->size);
      each_region(domain, batch.region_type, batch.elements, batch.count, batch.element_size, 0,
                  [&](size_t, Region region) {
                    operate(domain_of(domain), OperationAction::memory_initialized, region.handle,
                            region.size);
                  });
    });
  }
}

}  // namespace

void fill_memory(Slots slots) {
  slots.set(NVTX3EXT_CBID_nvtxMemHeapRegister, register_heap);
  slots.set(
      NVTX3EXT_CBID_nvtxMemHeapUnregister, +[](Domain domain, nvtxMemHeapHandle_t heap) {
        act<OperationAction::heap_unregister>(domain, heap);
        forget(domain_of(domain), Kind::heap, number_of(heap));
      });
  slots.set(NVTX3EXT_CBID_nvtxMemHeapReset, act<OperationAction::heap_reset, nvtxMemHeapHandle_t>);
  slots.set(NVTX3EXT_CBID_nvtxMemRegionsRegister, register_regions);
  slots.set(NVTX3EXT_CBID_nvtxMemRegionsResize, resize_regions);
  slots.set(NVTX3EXT_CBID_nvtxMemRegionsUnregister, unregister_regions);
  slots.set(NVTX3EXT_CBID_nvtxMemRegionsName, name_regions);
  slots.set(NVTX3EXT_CBID_nvtxMemPermissionsAssign, assign_permissions);
  slots.set(NVTX3EXT_CBID_nvtxMemPermissionsCreate, create_permissions);
  slots.set(
      NVTX3EXT_CBID_nvtxMemPermissionsDestroy, +[](Domain domain, nvtxMemPermissionsHandle_t permissions) {
        act<OperationAction::permissions_destroy>(domain, permissions);
        forget(domain_of(domain), Kind::permissions, number_of(permissions));
      });
  slots.set(NVTX3EXT_CBID_nvtxMemPermissionsReset,
            act<OperationAction::permissions_reset, nvtxMemPermissionsHandle_t>);
  slots.set(
      NVTX3EXT_CBID_nvtxMemPermissionsBind,
      +[](Domain domain, nvtxMemPermissionsHandle_t permissions, uint32_t scope, uint32_t flags) {
        operate(domain_of(domain), OperationAction::permissions_bind, number_of(permissions),
                static_cast<uint64_t>(flags) << 32 | scope);
      });
  slots.set(
      NVTX3EXT_CBID_nvtxMemPermissionsUnbind, +[](Domain domain, uint32_t scope) {
        operate(domain_of(domain), OperationAction::permissions_unbind, 0, scope);
      });
  slots.set(
      NVTX3EXT_CBID_nvtxMemCudaGetProcessWidePermissions, +[](Domain domain) {
        return guarded(nvtxMemPermissionsHandle_t{nullptr},
                       [&] { return define_permissions(domain, kCudaProcessWide, "cuda_process", 0); });
      });
  slots.set(
      NVTX3EXT_CBID_nvtxMemCudaGetDeviceWidePermissions, +[](Domain domain, int device) {
        return guarded(nvtxMemPermissionsHandle_t{nullptr}, [&] {
          uint64_t handle = kCudaDeviceWide + static_cast<uint32_t>(device);
          return define_permissions(domain, handle, ("cuda_device " + std::to_string(device)).c_str(), 0);
        });
      });
  slots.set(
      NVTX3EXT_CBID_nvtxMemCudaSetPeerAccess,
      +[](Domain domain, nvtxMemPermissionsHandle_t permissions, int peer, uint32_t flags) {
        // The same as assigning flags, to all memory of a device.
        operate(domain_of(domain), OperationAction::permissions_assign, number_of(permissions),
                static_cast<uint64_t>(static_cast<uint32_t>(peer)) << 32 | flags);
      });
  slots.set(NVTX3EXT_CBID_nvtxMemCudaMarkInitialized, mark_initialized);
}

}  // namespace warplens::agent
