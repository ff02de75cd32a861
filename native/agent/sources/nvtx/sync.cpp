// Records locks that programs implement themselves: each step is one record.
#include <algorithm>

#include "define.h"
#include "objects.h"
#include "table.h"

namespace warplens::agent {
namespace {

nvtxSyncUser_t create(nvtxDomainHandle_t domain, const nvtxSyncUserAttributes_t *attributes) {
  return attributes == nullptr ? nullptr : guarded(nvtxSyncUser_t{nullptr}, [&] {
    auto given = whole_of(*attributes, attributes->size);
    uint64_t handle = new_handle(domain_of(domain));
    std::string name;
    Json json("sync");
    json.member("name", message_text(given.messageType, given.message, name) ? name.c_str() : nullptr);
    define(domain_of(domain), Kind::sync, handle, json.close());
    return to_handle<nvtxSyncUser_t>(handle);
  });
}

template <OperationAction action>
void step(nvtxSyncUser_t object) {
  uint64_t handle = number_of(object);
  if (handle != 0) {
    operate(domain_of_handle(handle), action, handle);
  }
}

void destroy(nvtxSyncUser_t object) {
  step<OperationAction::sync_destroy>(object);
  uint64_t handle = number_of(object);
  forget(domain_of_handle(handle), Kind::sync, handle);
}

}  // namespace

void fill_sync(Table table) {
  table.set(NVTX_CBID_SYNC_DomainSyncUserCreate, create);
  table.set(NVTX_CBID_SYNC_DomainSyncUserDestroy, destroy);
  table.set(NVTX_CBID_SYNC_DomainSyncUserAcquireStart, step<OperationAction::sync_acquire_start>);
  table.set(NVTX_CBID_SYNC_DomainSyncUserAcquireFailed, step<OperationAction::sync_acquire_failed>);
  table.set(NVTX_CBID_SYNC_DomainSyncUserAcquireSuccess, step<OperationAction::sync_acquire_success>);
  table.set(NVTX_CBID_SYNC_DomainSyncUserReleasing, step<OperationAction::sync_releasing>);
}

}  // namespace warplens::agent
