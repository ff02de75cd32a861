// Semantics: lists of structures that say what a payload's entry or a counter means.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "schemas.h"

namespace warplens::agent {
namespace {

constexpr int kLongestList = 64;  // a list that bites its own tail ends somewhere

// The structure in full; members that an older, shorter one lacks are zero.
template <typename Whole>
Whole read(const nvtxSemanticsHeader_t &head) {
  Whole whole{};
  std::memcpy(&whole, &head, std::min<size_t>(head.structSize, sizeof(whole)));
  return whole;
}

void limit(Json &json, const char *name, int64_t type, uint64_t bits) {
  if (type == 3) {
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    json.member(name, value);
  } else if (type == 2) {
    json.member(name, bits);
  } else if (type == 1) {
    json.member(name, static_cast<int64_t>(bits));
  }
}

void add_counter(Json &json, const nvtxSemanticsHeader_t &head) {
  auto counter = read<NvtxCounterSemantics>(head);
  json.member("flags", counter.flags);
  json.member("unit", counter.unit);
  json.member("unit_scale_numerator", counter.unit_scale_numerator);
  json.member("unit_scale_denominator", counter.unit_scale_denominator);
  json.member("limit_type", counter.limit_type);
  limit(json, "min", counter.limit_type, counter.minimum);
  limit(json, "max", counter.limit_type, counter.maximum);
}

void add_correlation(Json &json, const nvtxSemanticsHeader_t &head) {
  auto correlation = read<NvtxCorrelationSemantics>(head);
  char text[33];
  for (int i = 0; i < 16; ++i) {
    std::snprintf(text + static_cast<ptrdiff_t>(2) * i, 3, "%02x", correlation.uuid[i]);
  }
  json.member("uuid", text);
  json.member("name", correlation.name);
  json.member("role", correlation.role);
}

}  // namespace

std::string semantics_json(const nvtxSemanticsHeader_t *first) {
  std::string list = "[";
  int count = 0;
  for (; first != nullptr && count < kLongestList; first = first->next, ++count) {
    Json json;
    json.member("id", uint32_t{first->semanticId});
    json.member("version", uint32_t{first->version});
    switch (static_cast<NvtxSemanticsKind>(first->semanticId)) {
      case NvtxSemanticsKind::scope:
        json.member("scope", read<NvtxScopeSemantics>(*first).scope);
        break;
      case NvtxSemanticsKind::time:
        json.member("time_domain", read<NvtxTimeSemantics>(*first).time_domain);
        break;
      case NvtxSemanticsKind::correlation:
        add_correlation(json, *first);
        break;
      case NvtxSemanticsKind::counter:
        add_counter(json, *first);
        break;
    }
    list += count == 0 ? "" : ", ";
    list += json.close();
  }
  return list + "]";
}

uint64_t semantics_time_domain(const nvtxSemanticsHeader_t *first) {
  for (int count = 0; first != nullptr && count < kLongestList; first = first->next, ++count) {
    if (static_cast<NvtxSemanticsKind>(first->semanticId) == NvtxSemanticsKind::time) {
      return read<NvtxTimeSemantics>(*first).time_domain;
    }
  }
  return 0;
}

}  // namespace warplens::agent
