// Reads attributes of Python objects from memory.
// They are in `__dict__`, or from 3.11 on in the object itself. Memory may change: nothing is trusted.
#include "attributes.h"

#include <string>

#include "agent/python/memory/memory.h"
#include "agent/python/memory/texts.h"

namespace warplens::agent {
namespace {

constexpr uintptr_t kDictOffset = 288;  // of a type, 3.10: where its objects have the pointer to their dict
constexpr uint64_t kInlineValues = 1 << 2, kManagedDict = 1 << 4;  // flags of a type, from 3.13, 3.11 on
constexpr uint64_t kMostKeys = 256;

// Offsets, as the headers of 3.10 to 3.15 have them. An object of a free-threaded Python begins with 16 bytes more.
struct Offsets {
  explicit Offsets(const PythonRuntime &python)
      : head(python.free_threaded ? 16 : 0),
        cached_keys(head + (python.at.version >= 0x030f   ? 888
                            : python.at.version >= 0x030c ? 880
                                                          : 872)),
        managed(python.free_threaded ? 8 : 24) {}
  uintptr_t head;
  uintptr_t cached_keys;             // of a type: the keys that its objects share
  uintptr_t managed;                 // in front of an object: the pointer to its dict, from 3.11 on
  uintptr_t basic_size = 32 + head;  // of a type
  uintptr_t flags = 168 + head;      // of a type
  uintptr_t keys = 32 + head, values = 40 + head;  // of a dict
};

// Where values lie: in the entries of the keys, or in a separate array.
struct Dict {
  uintptr_t keys = 0;
  uintptr_t values = 0;
};

uintptr_t pointer_at(uintptr_t address) {
  uintptr_t value = 0;
  return copy_memory(value, address) ? value : 0;
}

// Of a dictionary with separate keys, from 3.13 on four bytes stand in front of the values.
uintptr_t values_of(uint32_t version, uintptr_t values) {
  return values != 0 && version >= 0x030d ? values + 8 : values;
}

Dict parts_of(uint32_t version, const Offsets &at, uintptr_t dict) {
  return dict == 0 ? Dict{}
                   : Dict{pointer_at(dict + at.keys), values_of(version, pointer_at(dict + at.values))};
}

Dict find_dict(uint32_t version, const Offsets &at, uintptr_t object, uintptr_t type) {
  if (version == 0x030a) {
    const uintptr_t offset = pointer_at(type + kDictOffset);
    return offset > 0 && offset < 4096 ? parts_of(version, at, pointer_at(object + offset)) : Dict{};
  }
  uint64_t flags = 0;
  if (!copy_memory(flags, type + at.flags) || (flags & kManagedDict) == 0) {
    return {};
  }
  const uintptr_t shared = pointer_at(type + at.cached_keys);
  const uintptr_t before = pointer_at(object - at.managed);
  if (version == 0x030b) {
    const uintptr_t values = pointer_at(object - 32);
    return values != 0 ? Dict{shared, values} : parts_of(version, at, before);
  }
  if (version == 0x030c) {
    return (before & 1) != 0 ? Dict{shared, before + 1} : parts_of(version, at, before);
  }
  if (before != 0 || (flags & kInlineValues) == 0) {
    return parts_of(version, at, before);
  }
  return {shared, values_of(version, object + pointer_at(type + at.basic_size))};
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
  if (version < 0x030a || version > 0x030f || object % 8 != 0) {
    return 0;
  }
  const uintptr_t type = pointer_at(object + python.at.object_type);
  const Dict dict = type != 0 ? find_dict(version, Offsets(python), object, type) : Dict{};
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
