// Schemas and enumerations: kept for copying payloads, and told to the reader as JSON.
#include "schemas.h"

#include <algorithm>
#include <cstring>

#include "agent/sources/nvtx/define.h"
#include "agent/sources/nvtx/event.h"

namespace warplens::agent {
namespace {

constexpr size_t kLongestJson = Names::kLongestDefinition - 4096;
constexpr char kEndSchema[] =
    "warplens.end";  // of native/bindings/ranges/end_attributes.cpp: message, colour and category

Registry<Schema> g_schemas;

template <typename Bits>
bool has(uint64_t mask, Bits bits) {
  return (mask & static_cast<uint64_t>(bits)) != 0;
}

uint64_t id_for(uint64_t given) {
  return given >= kStaticIds ? given : new_id();
}

size_t align_up(size_t at, size_t align) {
  return (at + align - 1) / align * align;
}

// Size and alignment as the compiler of the program sees them; only for layouts that are fixed.
void measure(uint16_t domain, Schema &schema) {
  size_t end = 0;
  size_t align = 1;
  bool fixed = true;
  for (size_t i = 0; i < schema.entries.size(); ++i) {
    const SchemaEntry &entry = schema.entries[i];
    Extent one =
        is_pointer(entry) || is_offset(entry) ? Extent{8, 8} : extent_of(domain, entry.type, schema.pack);
    uint64_t array = entry.flags & kNvtxEntryArrayMask;
    size_t count = 1;
    if (!is_pointer(entry) && !is_offset(entry)) {
      bool counted =
          array == NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE || (array == 0 && is_string(entry.type));
      count = counted ? entry.detail : 1;
      fixed = fixed && one.size != 0 && (array == 0 || counted) && count < BlobLog::kLargest;
    }
    if (!fixed) {
      break;
    }
    size_t own = schema.pack == 0 ? one.align : std::min(one.align, schema.pack);
    align = std::max(align, own);
    size_t at = i == 0 || entry.offset != 0 ? entry.offset : align_up(end, own);
    end = schema.type >= NVTX_PAYLOAD_SCHEMA_TYPE_UNION ? std::max(end, one.size * count)
                                                        : at + one.size * count;
  }
  schema.align = align;
  if (schema.size == 0 && fixed) {
    schema.size = align_up(end, align);
  }
}

bool only_bytes(uint16_t domain, const SchemaEntry &entry) {
  if (is_pointer(entry) || is_offset(entry) || entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY ||
      entry.type == NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB ||
      (entry.flags & kNvtxEntryAttributeMask) == NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE) {
    return false;
  }
  if (entry.type < kStaticIds) {
    return true;
  }
  const Schema *nested = find_schema(domain, entry.type);
  return nested != nullptr && nested->plain;  // one that comes later is looked at when it is used
}

std::string entry_json(const nvtxPayloadSchemaEntry_t &entry) {
  Json json;
  json.member("name", entry.name);
  if (entry.description != nullptr) {
    json.member("description", entry.description);
  }
  json.member("type", entry.type);
  json.member("flags", entry.flags);
  json.member("array", entry.arrayOrUnionDetail);
  json.member("offset", entry.offset);
  if (entry.semantics != nullptr) {
    json.word("semantics", semantics_json(entry.semantics));
  }
  return json.close();
}

// A list that would make the definition too long ends early, and the definition says so.
template <typename Entry, typename Write>
void add_entries(Json &json, const Entry *entries, size_t count, const Write &write) {
  std::string list = "[";
  size_t i = 0;
  for (; i < count && list.size() < kLongestJson; ++i) {
    list += i == 0 ? "" : ", ";
    list += write(entries[i]);
  }
  if (list.size() > kLongestJson) {
    list = "[";
    i = 0;
  }
  json.word("entries", list + "]");
  if (i < count) {
    json.word("cut", "true");
  }
}

void keep(uint16_t domain, Schema &&schema) {
  const Schema *known = g_schemas.find(domain, schema.id);
  if (known == nullptr || *known != schema) {
    uint64_t id = schema.id;
    g_schemas.insert(domain, id, std::move(schema));
  }
}

}  // namespace

Extent predefined_extent(uint64_t type) {
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR:
    case NVTX_PAYLOAD_ENTRY_TYPE_UCHAR:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT8:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT8:
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR8:
    case NVTX_PAYLOAD_ENTRY_TYPE_BYTE:
    case NVTX_PAYLOAD_ENTRY_TYPE_CSTRING:
    case NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8:
      return {1, 1};
    case NVTX_PAYLOAD_ENTRY_TYPE_SHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_USHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR16:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_BF16:
    case NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16:
      return {2, 2};
    case NVTX_PAYLOAD_ENTRY_TYPE_INT:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_TF32:
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR32:
    case NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY:
    case NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB:
    case NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32:
      return {4, 4};
    case NVTX_PAYLOAD_ENTRY_TYPE_WCHAR:
      return {sizeof(wchar_t), alignof(wchar_t)};
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONG:
      return {sizeof(long), alignof(long)};
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGDOUBLE:
      return {sizeof(long double), alignof(long double)};
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_ULONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_SIZE:
    case NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS:
    case kNvtxEntryRangeId:
    case NVTX_PAYLOAD_ENTRY_TYPE_SCOPE_ID:
    case NVTX_PAYLOAD_ENTRY_TYPE_PID_UINT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_TID_UINT64:
    case NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE:
      return {8, 8};
    case NVTX_PAYLOAD_ENTRY_TYPE_INT128:
    case NVTX_PAYLOAD_ENTRY_TYPE_UINT128:
    case NVTX_PAYLOAD_ENTRY_TYPE_FLOAT128:
      return {16, 16};
    default:
      return {0, 1};
  }
}

Extent extent_of(uint16_t domain, uint64_t type, size_t pack) {
  Extent extent = predefined_extent(type);
  if (type >= kStaticIds) {
    const Schema *nested = find_schema(domain, type);
    extent = nested == nullptr ? Extent{0, 1} : Extent{nested->size, nested->align};
  }
  if (pack != 0) {
    extent.align = std::min(extent.align, pack);
  }
  return extent;
}

bool is_pointer(const SchemaEntry &entry) {
  return has(entry.flags, NVTX_PAYLOAD_ENTRY_FLAG_POINTER) ||
         (is_string(entry.type) && (entry.flags & kNvtxEntryArrayMask) == 0 && entry.detail == 0 &&
          !is_offset(entry));
}

const Schema *find_schema(uint16_t domain, uint64_t id) {
  return id < kStaticIds ? nullptr : g_schemas.find(domain, id);
}

uint64_t register_schema(nvtxDomainHandle_t handle, const nvtxPayloadSchemaAttr_t *attributes) {
  return attributes == nullptr ? 0 : guarded(uint64_t{0}, [&]() -> uint64_t {
    const nvtxPayloadSchemaAttr_t &given = *attributes;
    uint64_t mask = given.fieldMask;
    uint16_t domain = domain_of(handle);
    bool entries = has(mask, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES) && given.entries != nullptr;
    size_t count = entries && has(mask, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES) ? given.numEntries : 0;
    Schema schema;
    schema.id = id_for(has(mask, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID) ? given.schemaId : 0);
    schema.type = has(mask, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE) ? given.type : 0;
    schema.flags = has(mask, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS) ? given.flags : 0;
    schema.pack = has(mask, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ALIGNMENT) ? given.packAlign : 0;
    if (has(mask, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE) &&
        schema.type != NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC) {
      schema.size = given.payloadStaticSize;
    }
    for (size_t i = 0; i < count; ++i) {
      const nvtxPayloadSchemaEntry_t &entry = given.entries[i];
      schema.entries.push_back({entry.flags, entry.type, entry.arrayOrUnionDetail, entry.offset,
                                semantics_time_domain(entry.semantics)});
      schema.plain = schema.plain && only_bytes(domain, schema.entries.back());
    }
    const char *name = has(mask, NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME) ? given.name : nullptr;
    schema.is_ours = name != nullptr && std::strcmp(name, kEndSchema) == 0;
    Json json("schema");
    json.member("name", name);
    json.member("type", schema.type);
    json.member("flags", schema.flags);
    measure(domain, schema);
    json.member("size", uint64_t{schema.size});
    json.member("align", uint64_t{schema.pack});
    add_entries(json, given.entries, count, entry_json);
    uint64_t id = schema.id;
    bool told = !schema.is_ours;
    keep(domain, std::move(schema));
    if (told) {
      define(domain, Kind::schema, id, json.close());
    }
    return id;
  });
}

uint64_t register_enum(nvtxDomainHandle_t handle, const nvtxPayloadEnumAttr_t *attributes) {
  return attributes == nullptr ? 0 : guarded(uint64_t{0}, [&]() -> uint64_t {
    const nvtxPayloadEnumAttr_t &given = *attributes;
    uint64_t mask = given.fieldMask;
    uint16_t domain = domain_of(handle);
    bool entries = has(mask, NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES) && given.entries != nullptr;
    size_t count = entries && has(mask, NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES) ? given.numEntries : 0;
    Schema schema;
    schema.id = id_for(has(mask, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SCHEMA_ID) ? given.schemaId : 0);
    schema.size = has(mask, NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE) ? given.sizeOfEnum : 0;
    schema.align = std::clamp<size_t>(schema.size, 1, 16);
    Json json("enum");
    json.member("name", has(mask, NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME) ? given.name : nullptr);
    json.member("size", uint64_t{schema.size});
    add_entries(json, given.entries, count, [](const nvtxPayloadEnum_t &entry) {
      Json value;
      value.member("name", entry.name);
      value.member("value", entry.value);
      value.word("flag", entry.isFlag != 0 ? "true" : "false");
      return value.close();
    });
    uint64_t id = schema.id;
    keep(domain, std::move(schema));
    define(domain, Kind::schema, id, json.close());
    return id;
  });
}

}  // namespace warplens::agent
