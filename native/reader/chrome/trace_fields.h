// The fields of events in a Chrome trace, by kind of event.
// importers/kineto/layout.py mirrors them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

namespace warplens::reader {

constexpr int64_t kNull = std::numeric_limits<int64_t>::min();
constexpr int32_t kNull32 = std::numeric_limits<int32_t>::min();

// Texts are codes of TextCodes. Times are ns.
enum Field : uint8_t {
  kStart,
  kEnd,
  kLane,
  kName,
  kCategory,
  kCorrelation,
  kExternal,
  kStream,
  kDevice,
  kContext,
  kGridX,
  kGridY,
  kGridZ,
  kBlockX,
  kBlockY,
  kBlockZ,
  kRegisters,
  kShared,
  kBytes,
  kGraphNode,
  kGraph,
  kSequence,
  kForwardThread,
  kShapes,
  kTypes,
  kStrides,
  kConcrete,
  kCollective,
  kGroup,
  kGroupSize,
  kGroupSequence,
  kElementsIn,
  kElementsOut,
  kElementType,
  kRanks,
  kAddress,
  kAllocated,
  kReserved,
  kDeviceType,
  kSyncKind,
  kWaitStream,
  kWaitCorrelation,
  kEvent,
  kId,
  kPhase,
  kPayload,
  kArgument,
  kArgumentText,
  kValue,
  kIsReal,
  kSortIndex,
  kRow,
  kOwner,
  kFlags,
  kFields,
};

enum Kind : uint8_t {
  kOp,
  kAnnotation,
  kPython,
  kRuntime,
  kDriver,
  kKernel,
  kMemcpy,
  kMemset,
  kSync,
  kCudaEvent,
  kOverhead,
  kMemory,
  kFlow,
  kRange,
  kAsync,
  kMark,
  kCounter,
  kMetadata,
  kCollectiveCall,
  kKinds,
  // What has no rows:
  kGpuAnnotation,
  kSpan,
};

struct Column {
  Field field;
  bool wide;  // 64 bits, else 32
};

constexpr size_t kMostColumns = 24;

struct Columns {
  std::array<Column, kMostColumns> items{};
  size_t count = 0;
};

const Columns &columns_of(Kind kind);
// The kind of complete events (`ph: X`) of a category.
Kind kind_of_category(std::string_view category);
// How a known argument is read.
enum class Reading : uint8_t { number, text, json, triple };
struct Argument {
  std::string_view name;
  Field field;
  Reading reading;
};
const Argument *find_argument(std::string_view name);
// The members of an event that are read.
enum class Member : uint8_t {
  other,
  phase,
  name,
  category,
  start,
  duration,
  process,
  thread,
  id,
  scope,
  arguments
};
Member find_member(std::string_view name);

}  // namespace warplens::reader
