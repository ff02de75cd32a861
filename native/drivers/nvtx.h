// The tool's side of NVTX v3 and its extensions: types and callback numbers, without the API's own implementation.
#pragma once

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>

#include <cstdint>

// Since headers of 2026: halves of deferred ranges, and the range that they belong to.
inline constexpr uint64_t kNvtxSchemaRangePush = 5 << 3;
inline constexpr uint64_t kNvtxSchemaRangePop = 6 << 3;
inline constexpr uint64_t kNvtxSchemaRangeStart = 7 << 3;
inline constexpr uint64_t kNvtxSchemaRangeEnd = 8 << 3;
inline constexpr uint64_t kNvtxSchemaEventMask = 15 << 3;

inline constexpr uint64_t kNvtxEntryRangeId = 67;

// Fields of several bits among the flags of a schema's entry.
inline constexpr uint64_t kNvtxEntryArrayMask = 7 << 4;
inline constexpr uint64_t kNvtxEntryAttributeMask = 3 << 10;
inline constexpr uint64_t kNvtxEntryRoleMask = 7 << 12;

// Semantics, the lists that hang on schema entries and counters: the numbers of the kinds, and what follows their heads.
struct NvtxScopeSemantics {
  nvtxSemanticsHeader_t header;
  uint64_t scope;
};
struct NvtxTimeSemantics {
  nvtxSemanticsHeader_t header;
  uint64_t time_domain;
};
struct NvtxCorrelationSemantics {
  nvtxSemanticsHeader_t header;
  unsigned char uuid[16];
  const char *name;
  uint64_t role;
};
struct NvtxCounterSemantics {
  nvtxSemanticsHeader_t header;
  uint64_t flags;
  const char *unit;
  uint64_t unit_scale_numerator;
  uint64_t unit_scale_denominator;
  int64_t limit_type;  // 1 int64, 2 uint64, 3 double
  uint64_t minimum;
  uint64_t maximum;
};
enum class NvtxSemanticsKind : uint16_t { scope = 1, time = 2, correlation = 3, counter = 5 };

// From nvToolsExtMemCudaRt.h, which cannot be read without CUDA's headers.
struct NvtxMarkInitializedBatch {
  uint16_t compat_id;
  uint16_t size;
  uint32_t region_type;
  size_t count;
  size_t element_size;
  const void *elements;
};
struct NvtxCudaArrayRange {
  uint16_t compat_id;
  uint16_t size;
  uint32_t reserved;
  const void *array;
  size_t offset[3];
  size_t extent[3];
};
