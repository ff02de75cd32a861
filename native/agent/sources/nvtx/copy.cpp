// Walks a payload along its schema: copies what it points to, finds what it says about its event.
#include <algorithm>
#include <vector>

#include "agent/sources/nvtx/extension/payload.h"
#include "agent/sources/nvtx/extension/schemas.h"
#include "foreign.h"

namespace warplens::agent {
namespace {

constexpr int kDeepest = 8;               // nested schemas
constexpr uint32_t kMostSteps = 1 << 17;  // entries looked at in one payload: schemas may hold each other
constexpr uint64_t kUnionSelector = NVTX_PAYLOAD_ENTRY_TYPE_UNION_SELECTOR;

size_t align_up(size_t at, size_t align) {
  return (at + align - 1) / align * align;
}

class Walk {
 public:
  Walk(ThreadLog &log, uint16_t domain, const nvtxPayloadData_t *all, size_t count, Change &change,
       DeferredFacts *facts)
      : log_(log), domain_(domain), all_(all), count_(count), change_(change), facts_(facts) {}

  //! The structure at `base` in the copy, of which `limit` bytes are there; returns where it ends.
  size_t structure(const Schema &schema, size_t base, size_t limit, int depth);

  CopiedPayload copy;

 private:
  struct Place {
    size_t at = 0;
    size_t size = 0;  // of one element
    size_t count = 0;
    uint64_t type = 0;
  };
  uint64_t integer(uint64_t type, size_t size, const char *bytes) const;
  size_t product(const Place &place) const;
  size_t elements(const Schema &schema, const SchemaEntry &entry, const std::vector<Place> &places) const;
  size_t terminated(size_t at, size_t size, size_t limit) const;
  uint64_t copy_pointee(const SchemaEntry &entry, const void *from, size_t count, size_t size, size_t most,
                        int depth);
  void follow_pointer(const SchemaEntry &entry, size_t at, size_t count, size_t size, int depth);
  void follow_offset(const SchemaEntry &entry, size_t base, size_t at, size_t limit, size_t count,
                     size_t size, int depth);
  void nested(const SchemaEntry &entry, const Schema &schema, const std::vector<Place> &places, Place &place,
              size_t limit, int depth);
  void says(const SchemaEntry &entry, const Place &place, const char *text, size_t size);

  ThreadLog &log_;
  uint16_t domain_;
  const nvtxPayloadData_t *all_;
  size_t count_;
  Change &change_;
  DeferredFacts *facts_;
  uint32_t steps_ = 0;
};

// Signed types below zero count as zero: lengths are never negative.
uint64_t Walk::integer(uint64_t type, size_t size, const char *bytes) const {
  uint64_t value = 0;
  std::memcpy(&value, bytes, std::min<size_t>(size, sizeof(value)));
  bool is_signed = false;
  switch (type) {
    case NVTX_PAYLOAD_ENTRY_TYPE_CHAR:
    case NVTX_PAYLOAD_ENTRY_TYPE_SHORT:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_LONGLONG:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT8:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT16:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT32:
    case NVTX_PAYLOAD_ENTRY_TYPE_INT64:
      is_signed = true;
      break;
    default:
      break;
  }
  return is_signed && size != 0 && (value >> (std::min<size_t>(size, 8) * 8 - 1) & 1) != 0 ? 0 : value;
}

// Elements of an array whose lengths are in one or more dimensions; never more than could be copied.
size_t Walk::product(const Place &place) const {
  size_t total = 1;
  for (size_t i = 0; i < place.count; ++i) {
    uint64_t one = integer(place.type, place.size, copy.bytes.data() + place.at + i * place.size);
    total = static_cast<size_t>(std::min<uint64_t>(one, BlobLog::kLargest)) * total;
    if (total > BlobLog::kLargest) {
      return BlobLog::kLargest;
    }
  }
  return place.count == 0 ? 0 : total;
}

size_t Walk::elements(const Schema &schema, const SchemaEntry &entry,
                      const std::vector<Place> &places) const {
  switch (entry.flags & kNvtxEntryArrayMask) {
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE:
      return std::min<uint64_t>(entry.detail, BlobLog::kLargest);
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX:
      return entry.detail < places.size() ? product(places[entry.detail]) : 0;
    case NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_PAYLOAD_INDEX: {
      if (entry.detail >= count_ || all_[entry.detail].payload == nullptr) {
        return 0;
      }
      const nvtxPayloadData_t &other = all_[entry.detail];
      const Schema *layout = find_schema(domain_, other.schemaId);
      uint64_t type =
          layout != nullptr && !layout->entries.empty() ? layout->entries[0].type : other.schemaId;
      size_t size = predefined_extent(type).size;
      size_t total = size == 0 || size > 8 ? 0 : 1;
      for (size_t i = 0; total != 0 && i < 8 && (i + 1) * size <= other.size; ++i) {
        total *= static_cast<size_t>(std::min<uint64_t>(
            integer(type, size, static_cast<const char *>(other.payload) + i * size), BlobLog::kLargest));
        total = std::min(total, BlobLog::kLargest);
      }
      return total;
    }
    default:
      return is_string(entry.type) && entry.detail != 0 && schema.type != 0
                 ? std::min<uint64_t>(entry.detail, BlobLog::kLargest)
                 : 1;
  }
}

// Elements of an embedded array up to the one that is all zero, that one included.
size_t Walk::terminated(size_t at, size_t size, size_t limit) const {
  for (size_t n = 0; size != 0 && at + size <= limit; at += size) {
    ++n;
    const char *element = copy.bytes.data() + at;
    if (std::all_of(element, element + size, [](char c) { return c == 0; })) {
      return n;
    }
  }
  return size == 0 || at > limit ? 0 : (limit - at) / size;
}

// Copies what lies at `from`, behind the payload; returns where, 0 when nothing could be read.
uint64_t Walk::copy_pointee(const SchemaEntry &entry, const void *from, size_t count, size_t size,
                            size_t most, int depth) {
  copy.bytes.resize(align_up(copy.bytes.size(), 8));
  size_t begin = copy.bytes.size();
  size_t room = std::min(begin < BlobLog::kLargest ? BlobLog::kLargest - begin : 0, most);
  uint64_t array = entry.flags & kNvtxEntryArrayMask;
  bool open_end = array == NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED ||
                  (is_string(entry.type) && array == 0 && entry.detail == 0);
  if (size == 0 || room < size) {  // nothing is known about it, or the payload is full
    copy.cut = true;
    return 0;
  }
  if (open_end) {
    bool whole = append_terminated(copy.bytes, from, size, std::min(room, Names::kLongest));
    copy.cut |= !whole;
    if (!whole && copy.bytes.size() - begin <= size) {
      copy.bytes.resize(begin);
      return 0;
    }
  } else {
    size_t got = append_foreign(copy.bytes, from, std::min(count * size, room));
    copy.cut |= got != count * size;
    if (got == 0) {
      return 0;
    }
    if (const Schema *inner = find_schema(domain_, entry.type); inner != nullptr && !inner->plain) {
      for (size_t i = 0; i < got / size && steps_ < kMostSteps; ++i) {
        structure(*inner, begin + i * size, begin + (i + 1) * size, depth + 1);
      }
    }
  }
  says(entry, {}, copy.bytes.data() + begin, copy.bytes.size() - begin);
  return begin;
}

// Replaces the pointer at `at` by the place of a copy of what it points to.
void Walk::follow_pointer(const SchemaEntry &entry, size_t at, size_t count, size_t size, int depth) {
  uintptr_t pointer = 0;
  std::memcpy(&pointer, copy.bytes.data() + at, sizeof(pointer));
  uint64_t place = pointer == 0 ? 0
                                : copy_pointee(entry, reinterpret_cast<const void *>(pointer), count, size,
                                               BlobLog::kLargest, depth);
  std::memcpy(copy.bytes.data() + at, &place, sizeof(place));
}

// The data at a distance: in the payload itself, or in what came with a batch; that is copied, and the distance set right.
void Walk::follow_offset(const SchemaEntry &entry, size_t base, size_t at, size_t limit, size_t count,
                         size_t size, int depth) {
  uint64_t offset = 0;
  std::memcpy(&offset, copy.bytes.data() + at, sizeof(offset));
  const FlexData flex = facts_ == nullptr ? FlexData{} : facts_->flex;
  if (flex.base == nullptr) {
    bool from_here = (entry.flags & NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE) != 0;
    size_t place = (from_here ? at + 8 : base) + std::min<uint64_t>(offset, limit);
    if (place < limit) {
      says(entry, {}, copy.bytes.data() + place, limit - place);
    }
  } else if (offset >= flex.begin && offset < flex.begin + flex.size) {
    uint64_t place =
        copy_pointee(entry, flex.base + offset, count, size, flex.begin + flex.size - offset, depth);
    if (place != 0 && (entry.flags & NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_HERE) != 0) {
      place -= at + 8;
    }
    std::memcpy(copy.bytes.data() + at, &place, sizeof(place));
  }
}

void Walk::nested(const SchemaEntry &entry, const Schema &schema, const std::vector<Place> &places,
                  Place &place, size_t limit, int depth) {
  if (schema.type >= NVTX_PAYLOAD_SCHEMA_TYPE_UNION) {
    // The member that a selector outside names; without one nobody knows what is there.
    if (schema.type == NVTX_PAYLOAD_SCHEMA_TYPE_UNION && entry.detail < places.size() &&
        schema.entries.size() < 4096) {
      size_t chosen = product(places[entry.detail]);
      if (chosen < schema.entries.size()) {
        Schema member;
        member.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
        member.pack = schema.pack;
        member.entries.push_back(schema.entries[chosen]);
        structure(member, place.at, limit, depth + 1);
      }
    }
    return;
  }
  size_t end = place.at;
  for (size_t i = 0; i < place.count && steps_ < kMostSteps; ++i) {
    size_t before = end;
    end = structure(schema, place.size == 0 ? end : place.at + i * place.size, limit, depth + 1);
    if (end > limit || end == before) {
      break;  // behind the payload, or nothing in it
    }
  }
  if (place.size == 0) {  // dynamic: as long as it turned out to be
    place.size = end - place.at;
  }
}

void Walk::says(const SchemaEntry &entry, const Place &place, const char *bytes, size_t size) {
  uint64_t attribute = entry.flags & kNvtxEntryAttributeMask;
  if (attribute == NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE) {
    if (entry.type == NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE && size >= 8) {
      change_.label.name = static_cast<uint32_t>(integer(0, 8, bytes));
      change_.name = true;
    } else if (entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF32 ||
               entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16) {
      std::wstring wide;
      size_t unit = predefined_extent(entry.type).size;
      for (size_t i = 0; i + unit <= size; i += unit) {
        uint64_t c = integer(0, unit, bytes + i);
        if (c == 0) {
          break;
        }
        if (unit == 2 && c >= 0xdc00 && c < 0xe000 && !wide.empty() && (wide.back() >> 10) == 0x36) {
          wide.back() =
              static_cast<wchar_t>(0x10000 + ((wide.back() & 0x3ff) << 10 | static_cast<wchar_t>(c & 0x3ff)));
        } else {
          wide += static_cast<wchar_t>(c);
        }
      }
      change_.label.name = log_.process()->passing(utf8(wide.c_str()));
      change_.name = true;
    } else if (is_string(entry.type)) {
      change_.label.name = log_.process()->passing({bytes, strnlen(bytes, size)});
      change_.name = true;
    }
  }
  if (place.size == 0) {
    return;  // the pointee of a pointer: only texts are passed that way
  }
  if (entry.type == NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY) {
    change_.label.category = static_cast<uint32_t>(integer(0, 4, bytes));
    change_.category = true;
  } else if (entry.type == NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB) {
    change_.label.color = static_cast<uint32_t>(integer(0, 4, bytes));
    change_.label.flags |= kFlagColor;
  } else if (facts_ != nullptr && entry.type == kNvtxEntryRangeId) {
    facts_->range_id = integer(0, 8, bytes);
  }
  uint64_t role = (entry.flags & kNvtxEntryRoleMask) >> 12;
  bool is_time = attribute == NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP || (role >= 1 && role <= 3);
  if (facts_ != nullptr && is_time && place.size <= 8 && entry.type != NVTX_PAYLOAD_ENTRY_TYPE_SCOPE_ID) {
    size_t which = role < DeferredFacts::kTimes ? role : 0;
    uint64_t bits = integer(0, place.size, bytes);
    facts_->time[which] = static_cast<int64_t>(bits);
    facts_->time_domain[which] = entry.time_domain;
    facts_->has_time[which] = true;
  }
}

size_t Walk::structure(const Schema &schema, size_t base, size_t limit, int depth) {
  if (depth > kDeepest) {
    copy.cut = true;
    return limit;
  }
  std::vector<Place> places;
  size_t end = base;
  for (size_t i = 0; i < schema.entries.size(); ++i) {
    if (++steps_ > kMostSteps) {
      copy.cut = true;
      break;
    }
    const SchemaEntry &entry = schema.entries[i];
    bool reference = is_pointer(entry) || is_offset(entry);
    Extent one = extent_of(domain_, entry.type, schema.pack);
    size_t align = !reference ? one.align : schema.pack == 0 ? 8 : std::min<size_t>(8, schema.pack);
    size_t at = base + (i == 0 || entry.offset != 0 ? entry.offset
                                                    : align_up(end - base, std::max<size_t>(align, 1)));
    if (entry.type == kUnionSelector || at < base || at > limit) {
      copy.cut = copy.cut || at > limit;
      break;  // nothing behind it can be found
    }
    size_t count = elements(schema, entry, places);
    if (reference) {
      if (at + 8 > limit) {
        break;
      }
      places.push_back({at, 8, 1, NVTX_PAYLOAD_ENTRY_TYPE_ADDRESS});
      if (is_pointer(entry)) {
        follow_pointer(entry, at, count, one.size, depth);
      } else {
        follow_offset(entry, base, at, limit, count, one.size, depth);
      }
      end = at + 8;
      continue;
    }
    if ((entry.flags & kNvtxEntryArrayMask) == NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED) {
      count = terminated(at, one.size, limit);
    }
    Place place{at, one.size, count, entry.type};
    const Schema *inner = find_schema(domain_, entry.type);
    if (inner != nullptr && inner->type != 0 && (!inner->plain || one.size == 0)) {
      nested(entry, *inner, places, place, limit, depth);
    }
    size_t bytes = place.size * place.count;
    if (at + bytes > limit) {
      break;
    }
    places.push_back(place);
    if (place.size != 0 && bytes != 0 && inner == nullptr) {
      says(entry, place, copy.bytes.data() + at, bytes);
    }
    end = std::max(end, at + bytes);
  }
  if (schema.type == NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC || schema.size == 0) {
    return end;
  }
  return base + schema.size;
}

}  // namespace

CopiedPayload copy_payload(ThreadLog &log, uint16_t domain, const Schema &schema,
                           const nvtxPayloadData_t &payload, const nvtxPayloadData_t *all, size_t count,
                           Change &change, DeferredFacts *facts) {
  Walk walk(log, domain, all, count, change, facts);
  size_t size = std::min(payload.size, BlobLog::kLargest);
  walk.copy.cut = size < payload.size;
  walk.copy.bytes.assign(static_cast<const char *>(payload.payload), size);
  walk.copy.fixed = walk.structure(schema, 0, size, 0);
  return std::move(walk.copy);
}

}  // namespace warplens::agent
