// Names of things that other libraries made: resources, and what CUDA and OpenCL hand out.
#include <algorithm>

#include "define.h"
#include "objects.h"
#include "table.h"

namespace warplens::agent {
namespace {

const char *class_of(uint32_t type) {
  switch (type >> 16) {
    case 1:
      return "generic";
    case 2:
      return "sync_os";
    case 3:
      return "sync_pthread";
    case 4:
      return "cuda";
    case 5:
      return "cudart";
    case 6:
      return "opencl";
    default:
      return "unknown";
  }
}

nvtxResourceHandle_t create_resource(nvtxDomainHandle_t domain, nvtxResourceAttributes_t *attributes) {
  return attributes == nullptr ? nullptr : guarded(nvtxResourceHandle_t{nullptr}, [&] {
    auto given = whole_of(*attributes, attributes->size);
    auto type = static_cast<uint32_t>(given.identifierType);
    uint64_t handle = new_handle(domain_of(domain));
    std::string name;
    Json json("resource");
    json.member("type", type);
    json.member("class", class_of(type));
    json.member("identifier", uint64_t{given.identifier.ullValue});
    json.member("name", message_text(given.messageType, given.message, name) ? name.c_str() : nullptr);
    define(domain_of(domain), Kind::resource, handle, json.close());
    return to_handle<nvtxResourceHandle_t>(handle);
  });
}

void destroy_resource(nvtxResourceHandle_t resource) {
  uint64_t handle = number_of(resource);
  if (handle != 0) {
    operate(domain_of_handle(handle), OperationAction::resource_destroy, handle);
    forget(domain_of_handle(handle), Kind::resource, handle);
  }
}

// A later name of the same thing replaces the earlier one.
void name_object(Kind kind, const char *kind_name, const char *api, uint64_t identifier, const char *name) {
  Json json(kind_name);
  json.member("api", api);
  json.member("identifier", identifier);
  json.member("name", name);
  define(0, kind, identifier, json.close());
}

struct Cuda {
  static constexpr const char *kApi = "cuda";
};
struct Cudart {
  static constexpr const char *kApi = "cudart";
};
struct Opencl {
  static constexpr const char *kApi = "opencl";
};

constexpr const char *kKindNames[] = {"cuda_device", "cuda_context", "cuda_stream", "cuda_event"};
constexpr const char *kOpenclNames[] = {"opencl_device", "opencl_context", "opencl_command_queue",
                                        "opencl_memory", "opencl_sampler", "opencl_program",
                                        "opencl_event"};

inline uint64_t identifier_of(int device) {
  return static_cast<uint64_t>(static_cast<int64_t>(device));
}
inline uint64_t identifier_of(const void *handle) {
  return number_of(handle);
}

template <typename Api, int number, typename Object, typename Char>
void name(Object object, const Char *text) {
  guarded([&] {
    std::string wide;
    const char *narrow = nullptr;
    if constexpr (std::is_same_v<Char, char>) {
      narrow = text;
    } else if (text != nullptr) {
      wide = utf8(text);
      narrow = wide.c_str();
    }
    if constexpr (std::is_same_v<Api, Opencl>) {
      auto kind = static_cast<Kind>(static_cast<uint32_t>(Kind::opencl) + number);
      name_object(kind, kOpenclNames[number], Api::kApi, identifier_of(object), narrow);
    } else {
      auto kind = static_cast<Kind>(static_cast<uint32_t>(Kind::device) + number);
      name_object(kind, kKindNames[number], Api::kApi, identifier_of(object), narrow);
    }
  });
}

// Two neighbouring slots: the narrow name and the wide one.
template <typename Api, int number, typename Object>
void pair(Table &table, unsigned first) {
  table.set(first, name<Api, number, Object, char>);
  table.set(first + 1, name<Api, number, Object, wchar_t>);
}

}  // namespace

void fill_resources(Table table) {
  table.set(NVTX_CBID_CORE2_DomainResourceCreate, create_resource);
  table.set(NVTX_CBID_CORE2_DomainResourceDestroy, destroy_resource);
}

void fill_cuda_names(Table table) {
  pair<Cuda, 0, int>(table, NVTX_CBID_CUDA_NameCuDeviceA);
  pair<Cuda, 1, const void *>(table, NVTX_CBID_CUDA_NameCuContextA);
  pair<Cuda, 2, const void *>(table, NVTX_CBID_CUDA_NameCuStreamA);
  pair<Cuda, 3, const void *>(table, NVTX_CBID_CUDA_NameCuEventA);
}

void fill_cudart_names(Table table) {
  pair<Cudart, 0, int>(table, NVTX_CBID_CUDART_NameCudaDeviceA);
  pair<Cudart, 2, const void *>(table, NVTX_CBID_CUDART_NameCudaStreamA);
  pair<Cudart, 3, const void *>(table, NVTX_CBID_CUDART_NameCudaEventA);
}

void fill_opencl_names(Table table) {
  pair<Opencl, 0, const void *>(table, NVTX_CBID_OPENCL_NameClDeviceA);
  pair<Opencl, 1, const void *>(table, NVTX_CBID_OPENCL_NameClContextA);
  pair<Opencl, 2, const void *>(table, NVTX_CBID_OPENCL_NameClCommandQueueA);
  pair<Opencl, 3, const void *>(table, NVTX_CBID_OPENCL_NameClMemObjectA);
  pair<Opencl, 4, const void *>(table, NVTX_CBID_OPENCL_NameClSamplerA);
  pair<Opencl, 5, const void *>(table, NVTX_CBID_OPENCL_NameClProgramA);
  pair<Opencl, 6, const void *>(table, NVTX_CBID_OPENCL_NameClEventA);
}

}  // namespace warplens::agent
