// Walks `__dict__`, and the attributes that an object keeps without one since 3.11. Memory may change meanwhile: nothing in it is trusted.
#include "attributes.h"

#include <string>

#include "agent/python/memory/memory.h"
#include "agent/python/memory/texts.h"

namespace warplens::agent {
namespace {

// Offsets, the same from 3.10 to 3.13.
constexpr uintptr_t kBasicSize = 32;    // of a type
constexpr uintptr_t kTypeFlags = 168;   // of a type
constexpr uintptr_t kDictOffset = 288;  // of a type, 3.10: where its objects have the pointer to their dict
constexpr uintptr_t kDictKeys = 32, kDictValues = 40;
constexpr uint64_t kInlineValues = 1 << 2, kManagedDict = 1 << 4;  // flags of a type, from 3.13, 3.11 on
constexpr uint64_t kMostKeys = 256;

// Where values lie: in the entries of the keys, or in a separate array.
struct Dict {
  uintptr_t keys = 0;
  uintptr_t values = 0;
};

uintptr_t pointer_at(uintptr_t address) {
  uintptr_t value = 0;
  return copy_memory(value, address) ? value : 0;
}

uintptr_t cached_keys(uint32_t version, uintptr_t type) {
  return pointer_at(type + (version >= 0x030c ? 880 : 872));
}

// Of a dictionary with separate keys, from 3.13 on four bytes stand in front of the values.
uintptr_t values_of(uint32_t version, uintptr_t values) {
  return values != 0 && version >= 0x030d ? values + 8 : values;
}

Dict parts_of(uint32_t version, uintptr_t dict) {
  return dict == 0 ? Dict{}
                   : Dict{pointer_at(dict + kDictKeys), values_of(version, pointer_at(dict + kDictValues))};
}

Dict find_dict(uint32_t version, uintptr_t object, uintptr_t type) {
  if (version == 0x030a) {
    const uintptr_t offset = pointer_at(type + kDictOffset);
    return offset > 0 && offset < 4096 ? parts_of(version, pointer_at(object + offset)) : Dict{};
  }
  uint64_t flags = 0;
  if (!copy_memory(flags, type + kTypeFlags) || (flags & kManagedDict) == 0) {
    return {};
  }
  const uintptr_t before = pointer_at(object - 24);
  if (version == 0x030b) {
    const uintptr_t values = pointer_at(object - 32);
    return values != 0 ? Dict{cached_keys(version, type), values} : parts_of(version, before);
  }
  if (version == 0x030c) {
    return (before & 1) != 0 ? Dict{cached_keys(version, type), before + 1} : parts_of(version, before);
  }
  if (before != 0 || (flags & kInlineValues) == 0) {
    return parts_of(version, before);
  }
  return {cached_keys(version, type), values_of(version, object + pointer_at(type + kBasicSize))};
}

// The entries of a dictionary's keys.
struct Entries {
  uintptr_t first = 0;
  uint64_t count = 0;
  uint64_t size = 24;  // hash, key, value
  uint64_t key = 8;
};

Entries entries_of(uint32_t version, uintptr_t keys) {
  Entries entries;
  if (version == 0x030a) {
    uint64_t head[5] = {};  // references, size, lookup, usable, entries
    if (!copy_memory(head, keys)) {
      return {};
    }
    const uint64_t index = head[1] <= 0xff ? 1 : head[1] <= 0xffff ? 2 : 4;
    entries.first = keys + sizeof(head) + head[1] * index;
    entries.count = head[4];
  } else {
    uint8_t sizes[3] = {};  // two logarithms, kind
    if (!copy_memory(sizes, keys + 8) || !copy_memory(entries.count, keys + 24) || sizes[1] > 16) {
      return {};
    }
    entries.first = keys + 32 + (uint64_t{1} << sizes[1]);
    if (sizes[2] != 0) {  // all keys are texts
      entries.size = 16;
      entries.key = 0;
    }
  }
  entries.count = entries.count < kMostKeys ? entries.count : kMostKeys;
  return entries;
}

}  // namespace

uintptr_t read_attribute(const PythonRuntime &python, uintptr_t object, std::string_view name) {
  const uint32_t version = python.at.version;
  if (version < 0x030a || version > 0x030d || python.free_threaded || object % 8 != 0) {
    return 0;
  }
  const uintptr_t type = pointer_at(object + python.at.object_type);
  const Dict dict = type != 0 ? find_dict(version, object, type) : Dict{};
  if (dict.keys == 0) {
    return 0;
  }
  const Entries entries = entries_of(version, dict.keys);
  std::string text;
  for (uint64_t i = 0; i < entries.count; ++i) {
    const uintptr_t entry = entries.first + i * entries.size;
    const uintptr_t key = pointer_at(entry + entries.key);
    if (key != 0 && read_text(python, key, text) && text == name) {
      return pointer_at(dict.values != 0 ? dict.values + 8 * i : entry + entries.key + 8);
    }
  }
  return 0;
}

}  // namespace warplens::agent
