// Describes the fields of wide records to readers: a field is named once, its type comes from the structure itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "warplens/format.h"

namespace warplens {

struct WideField {
  const char *name;
  const char *type;
  size_t offset;
};

struct WideRecord {
  const char *name;
  RecordType type;
  size_t size;
  std::span<const WideField> fields;
};

//! The records of cuda_records.h, of cpu_records.h and of intrakernel_records.h.
std::span<const WideRecord> cuda_wide_records();
std::span<const WideRecord> cpu_wide_records();
std::span<const WideRecord> intrakernel_wide_records();

template <typename T>
constexpr const char *wide_type_of() {
  if constexpr (std::is_enum_v<T>) {
    return wide_type_of<std::underlying_type_t<T>>();
  } else if constexpr (std::is_signed_v<T>) {
    return sizeof(T) == 8 ? "i8" : "i4";
  } else {
    return sizeof(T) == 8 ? "u8" : sizeof(T) == 4 ? "u4" : sizeof(T) == 2 ? "u2" : "u1";
  }
}

}  // namespace warplens

#define FIELD(record, name)                                               \
  WideField {                                                             \
    #name, wide_type_of<decltype(record::name)>(), offsetof(record, name) \
  }

// Records have the flags of their heads; what has the same name here is called otherwise.
#define RENAMED(record, member, name)                                        \
  WideField {                                                                \
    name, wide_type_of<decltype(record::member)>(), offsetof(record, member) \
  }
