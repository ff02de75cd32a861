// The layout of an in-kernel buffer, version 1, as docs/dev/formats/intrakernel.md describes it. No includes: NVRTC has none to offer.
#pragma once

namespace warplens {

using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

enum class Mode : u32 { slices = 0, claim = 1, ring = 2 };

namespace layout {

constexpr u32 kVersion = 1;
constexpr u32 kBufferMagic = 0x4B494C57;  // "WLIK"
constexpr u32 kUnitMagic = 0x31554C57;    // "WLU1"
constexpr u32 kBufferHeader = 256;
constexpr u32 kUnitHeader = 64;
constexpr u32 kRecord = 16;
constexpr u32 kRingRecord = 8;

// Fields of the buffer's head.
constexpr u32 kMagicAt = 0, kModeAt = 8, kClockAt = 12, kUnitsAt = 16, kSlotsAt = 20, kStrideAt = 24,
              kWarpsAt = 28;
constexpr u32 kGenerationAt = 32, kEveryAt = 36, kMaskAt = 40, kClaimedAt = 128, kWantedAt = 136;

// What a record's word holds above its 16 bits of tag.
constexpr u32 kMark = 1u << 16;
constexpr u32 kByToken = 2u << 16;
constexpr u32 kHasGeneration = 4u << 16;
constexpr u32 kHasPayload = 8u << 16;
constexpr u32 kReservedTag = 0xFFFF;

constexpr u32 kUnitEnded = 1u << 16;  // in the word of a unit header that starts with the version

// A unit that the buffer has no slice for says which one it wanted; this one wanted another mode or another length of its ring.
constexpr u64 kMismatch = 0xFFFFFFFE;

}  // namespace layout
}  // namespace warplens
