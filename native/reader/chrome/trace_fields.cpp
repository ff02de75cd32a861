// Reads the fields of an event in a Chrome trace.
#include "trace_fields.h"

#include <initializer_list>
#include <utility>

namespace warplens::reader {
namespace {

constexpr size_t kSlots = 256;

constexpr std::array kArguments = {
    Argument{"correlation", kCorrelation, Reading::number},
    Argument{"External id", kExternal, Reading::number},
    Argument{"external id", kExternal, Reading::number},
    Argument{"stream", kStream, Reading::number},
    Argument{"device", kDevice, Reading::number},
    Argument{"context", kContext, Reading::number},
    Argument{"grid", kGridX, Reading::triple},
    Argument{"block", kBlockX, Reading::triple},
    Argument{"registers per thread", kRegisters, Reading::number},
    Argument{"shared memory", kShared, Reading::number},
    Argument{"bytes", kBytes, Reading::number},
    Argument{"graph node id", kGraphNode, Reading::number},
    Argument{"graph id", kGraph, Reading::number},
    Argument{"Sequence number", kSequence, Reading::number},
    Argument{"sequence number", kSequence, Reading::number},
    Argument{"Fwd thread id", kForwardThread, Reading::number},
    Argument{"Input Dims", kShapes, Reading::json},
    Argument{"Input dims", kShapes, Reading::json},
    Argument{"Input type", kTypes, Reading::json},
    Argument{"Input Strides", kStrides, Reading::json},
    Argument{"Concrete Inputs", kConcrete, Reading::json},
    Argument{"Collective name", kCollective, Reading::text},
    Argument{"Process Group Name", kGroup, Reading::text},
    Argument{"Group size", kGroupSize, Reading::number},
    Argument{"Seq", kGroupSequence, Reading::number},
    Argument{"In msg nelems", kElementsIn, Reading::number},
    Argument{"Out msg nelems", kElementsOut, Reading::number},
    Argument{"dtype", kElementType, Reading::text},
    Argument{"Process Group Ranks", kRanks, Reading::text},
    Argument{"Addr", kAddress, Reading::number},
    Argument{"Bytes", kBytes, Reading::number},
    Argument{"Total Allocated", kAllocated, Reading::number},
    Argument{"Total Reserved", kReserved, Reading::number},
    Argument{"Device Id", kDevice, Reading::number},
    Argument{"Device Type", kDeviceType, Reading::number},
    Argument{"cuda_sync_kind", kSyncKind, Reading::text},
    Argument{"wait_on_stream", kWaitStream, Reading::number},
    Argument{"wait_on_cuda_event_record_corr_id", kWaitCorrelation, Reading::number},
    Argument{"wait_on_cuda_event_id", kEvent, Reading::number},
    Argument{"event_id", kEvent, Reading::number},
};

constexpr size_t slot_of(std::string_view name) {
  size_t hash = name.size();
  if (!name.empty()) {
    const auto at = [&](size_t i) { return static_cast<size_t>(static_cast<unsigned char>(name[i])); };
    hash = hash * 31 + at(0);
    hash = hash * 31 + at(name.size() / 2);
    hash = hash * 31 + at(name.size() - 1);
  }
  return (hash ^ hash >> 8) % kSlots;
}

struct Table {
  std::array<uint8_t, kSlots> slots{};
  constexpr Table() {
    for (size_t i = 0; i < kArguments.size(); ++i) {
      size_t at = slot_of(kArguments[i].name);
      while (slots[at] != 0) {
        at = (at + 1) % kSlots;
      }
      slots[at] = static_cast<uint8_t>(i + 1);
    }
  }
};
constexpr Table kTable;

constexpr Columns list(std::initializer_list<Column> items) {
  Columns made;
  for (const Column &item : items) {
    made.items[made.count++] = item;
  }
  return made;
}

constexpr Column kWideStart{kStart, true}, kWideEnd{kEnd, true}, kOfLane{kLane, false}, kNamed{kName, false};

constexpr std::array<Columns, kKinds> kColumns = {
    list({kWideStart,
          kWideEnd,
          kOfLane,
          kNamed,
          {kExternal, true},
          {kSequence, true},
          {kForwardThread, false},
          {kShapes, false},
          {kTypes, false},
          {kStrides, false},
          {kConcrete, false}}),
    list({kWideStart, kWideEnd, kOfLane, kNamed}),
    list({kWideStart, kWideEnd, kOfLane, kNamed}),
    list({kWideStart, kWideEnd, kOfLane, kNamed, {kCorrelation, true}}),
    list({kWideStart, kWideEnd, kOfLane, kNamed, {kCorrelation, true}}),
    list({kWideStart,
          kWideEnd,
          kOfLane,
          kNamed,
          {kCorrelation, true},
          {kStream, true},
          {kDevice, false},
          {kContext, true},
          {kGridX, false},
          {kGridY, false},
          {kGridZ, false},
          {kBlockX, false},
          {kBlockY, false},
          {kBlockZ, false},
          {kRegisters, false},
          {kShared, true},
          {kGraph, true},
          {kGraphNode, true}}),
    list({kWideStart,
          kWideEnd,
          kOfLane,
          kNamed,
          {kCorrelation, true},
          {kStream, true},
          {kDevice, false},
          {kContext, true},
          {kBytes, true},
          {kGraph, true},
          {kGraphNode, true}}),
    list({kWideStart,
          kWideEnd,
          kOfLane,
          kNamed,
          {kCorrelation, true},
          {kStream, true},
          {kDevice, false},
          {kContext, true},
          {kBytes, true},
          {kGraph, true},
          {kGraphNode, true}}),
    list({kWideStart,
          kWideEnd,
          kOfLane,
          kNamed,
          {kCorrelation, true},
          {kStream, true},
          {kDevice, false},
          {kContext, true},
          {kSyncKind, false},
          {kWaitStream, true},
          {kWaitCorrelation, true},
          {kEvent, true}}),
    list({kWideStart,
          kWideEnd,
          kOfLane,
          kNamed,
          {kCorrelation, true},
          {kStream, true},
          {kDevice, false},
          {kContext, true},
          {kEvent, true}}),
    list({kWideStart, kWideEnd, kOfLane, kNamed, {kCorrelation, true}}),
    list({kWideStart,
          kOfLane,
          {kAddress, true},
          {kBytes, true},
          {kAllocated, true},
          {kReserved, true},
          {kDevice, false},
          {kDeviceType, false}}),
    list({kWideStart, kOfLane, {kId, true}, {kPhase, false}}),
    list({kWideStart, kWideEnd, kOfLane, kNamed, {kCategory, false}, {kPayload, true}, {kFlags, false}}),
    list({kWideStart,
          kWideEnd,
          kOfLane,
          kNamed,
          {kCategory, false},
          {kPayload, true},
          {kFlags, false},
          {kOwner, false}}),
    list({kWideStart, kOfLane, kNamed, {kCategory, false}, {kPayload, true}}),
    list({kWideStart,
          kOfLane,
          kNamed,
          {kCategory, false},
          {kArgument, false},
          {kValue, true},
          {kIsReal, false},
          {kId, true}}),
    list({kOfLane, kNamed, {kArgumentText, false}, {kSortIndex, true}}),
    list({{kOwner, false},
          {kRow, true},
          {kCollective, false},
          {kGroup, false},
          {kGroupSize, false},
          {kGroupSequence, true},
          {kElementsIn, true},
          {kElementsOut, true},
          {kElementType, false},
          {kRanks, false}}),
};

// Old and new names, of CUDA, ROCm and others.
constexpr std::array<std::pair<std::string_view, Kind>, 27> kCategories = {{
    {"cpu_op", kOp},
    {"Operator", kOp},
    {"operator", kOp},
    {"user_annotation", kAnnotation},
    {"python_function", kPython},
    {"Python function", kPython},
    {"cuda_runtime", kRuntime},
    {"Runtime", kRuntime},
    {"runtime", kRuntime},
    {"hip_runtime", kRuntime},
    {"xpu_runtime", kRuntime},
    {"cuda_driver", kDriver},
    {"hip_driver", kDriver},
    {"xpu_driver", kDriver},
    {"kernel", kKernel},
    {"Kernel", kKernel},
    {"gpu_memcpy", kMemcpy},
    {"Memcpy", kMemcpy},
    {"memcpy", kMemcpy},
    {"gpu_memset", kMemset},
    {"Memset", kMemset},
    {"memset", kMemset},
    {"cuda_sync", kSync},
    {"cuda_event", kCudaEvent},
    {"overhead", kOverhead},
    {"gpu_user_annotation", kGpuAnnotation},
    {"Trace", kSpan},
}};

constexpr std::array<std::pair<std::string_view, Member>, 11> kMembers = {{
    {"ph", Member::phase},
    {"name", Member::name},
    {"cat", Member::category},
    {"ts", Member::start},
    {"dur", Member::duration},
    {"pid", Member::process},
    {"tid", Member::thread},
    {"id", Member::id},
    {"id2", Member::scope},
    {"scope", Member::scope},
    {"args", Member::arguments},
}};

}  // namespace

const Columns &columns_of(Kind kind) {
  return kColumns[kind];
}

Kind kind_of_category(std::string_view category) {
  for (const auto &[name, kind] : kCategories) {
    if (name == category) {
      return kind;
    }
  }
  return kRange;
}

Member find_member(std::string_view name) {
  for (const auto &[known, member] : kMembers) {
    if (known == name) {
      return member;
    }
  }
  return Member::other;
}

const Argument *find_argument(std::string_view name) {
  for (size_t at = slot_of(name); kTable.slots[at] != 0; at = (at + 1) % kSlots) {
    const Argument &found = kArguments[kTable.slots[at] - 1U];
    if (found.name == name) {
      return &found;
    }
  }
  return nullptr;
}

}  // namespace warplens::reader
