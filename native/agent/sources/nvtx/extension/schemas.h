// The layouts of payloads that programs registered.
#pragma once

#include <vector>

#include "agent/sources/nvtx/registry.h"
#include "agent/sources/nvtx/text.h"

namespace warplens::agent {

struct SchemaEntry {
  uint64_t flags;
  uint64_t type;
  uint64_t detail;
  uint64_t offset;
  uint64_t time_domain;  // of a timestamp, 0 = not said

  bool operator==(const SchemaEntry &) const = default;
};

struct Schema {
  uint64_t id = 0;
  uint64_t type = 0;  // NVTX_PAYLOAD_SCHEMA_TYPE_*, 0 for an enumeration
  uint64_t flags = 0;
  size_t size = 0;  // bytes of the fixed part, 0 = not known
  size_t align = 1;
  size_t pack = 0;
  bool plain = true;  // no pointers, and nothing about the event: bytes to copy
  bool is_ours =
      false;  // how our own binding says what NVTX has no call for: nothing that readers want to see
  std::vector<SchemaEntry> entries;

  bool operator==(const Schema &) const = default;
};

//! Size and alignment of one element of a type; size 0 where the type is not known.
struct Extent {
  size_t size;
  size_t align;
};
Extent predefined_extent(uint64_t type);
Extent extent_of(uint16_t domain, uint64_t type, size_t pack);

//! Texts of these types that are not arrays are pointers.
inline bool is_string(uint64_t type) {
  return type >= NVTX_PAYLOAD_ENTRY_TYPE_CSTRING && type <= NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32;
}
bool is_pointer(const SchemaEntry &entry);
//! A distance in bytes instead of the data: from the payload's begin, or from behind the entry.
inline bool is_offset(const SchemaEntry &entry) {
  return (entry.flags &
          (NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE | NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE)) != 0;
}

//! [MT] Null for a predefined type and for one that was never registered.
const Schema *find_schema(uint16_t domain, uint64_t id);

uint64_t register_schema(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *attributes);
uint64_t register_enum(nvtxDomainHandle_t domain, const nvtxPayloadEnumAttr_t *attributes);

//! JSON of a list of semantics, and the time domain that it names (0 = none). May throw.
std::string semantics_json(const nvtxSemanticsHeader_t *first);
uint64_t semantics_time_domain(const nvtxSemanticsHeader_t *first);

}  // namespace warplens::agent
