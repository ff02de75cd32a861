// warplens's in-kernel recorder for CUDA C++: nvcc, NVRTC, CuPy's RawKernel, PyTorch's inline extensions. C++17, no other header.
//
//   WARPLENS_TAGS(Tag, load, multiply, store)
//
//   __global__ void kernel(float *x, int tiles, void *profile) {
//     warplens::Profiler prof(profile);                  // at the top; writes its end when it goes out of scope
//     for (int k = 0; k < tiles; ++k) {
//       WARPLENS_REGION(prof, Tag::load);                // to the end of the block
//       WARPLENS_REGION(prof, Tag::multiply, k);         // with a payload of 32 bits
//       auto token = prof.start();                       // where a block does not fit
//       prof.stop(token, Tag::store);
//       prof.mark(Tag::store, k);                        // a moment
//     }
//   }
//
// Lane 0 of each warp that the buffer asks for records; the others run the same instructions under a false predicate.
// A null pointer records nothing. Compiled without a GPU compiler it is the same recorder on the CPU: warplens_host.h.
//
// Compile-time choices, as -D: WARPLENS_INTRAKERNEL_OFF (no code at all), WARPLENS_CLOCK (0: %globaltimer, 1: %clock; else 0 from
// sm_90 on), WARPLENS_GENERATION=1 (every record says its launch), WARPLENS_MODE (0: slices, 1: claim; else the buffer decides),
// WARPLENS_RING_SLOTS (of Ring; 64).
#pragma once

#if !defined(_MSC_VER) && __cplusplus < 201703L
#error "warplens.cuh needs C++17 or later: -std=c++17"
#endif

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#include "warplens_ptx.h"
#else
#include "warplens_host.h"
#include "warplens_host_copies.h"
#endif

#ifndef WARPLENS_CLOCK
#define WARPLENS_CLOCK ::warplens::machine::kNaturalClock
#endif
#ifndef WARPLENS_GENERATION
#define WARPLENS_GENERATION 0
#endif
#ifndef WARPLENS_RING_SLOTS
#define WARPLENS_RING_SLOTS 64
#endif

namespace warplens {

#ifdef WARPLENS_INTRAKERNEL_OFF
constexpr bool kEnabledByDefault = false;
#else
constexpr bool kEnabledByDefault = true;
#endif

// Room for the latest Slots records of each of Warps warps: `__shared__ warplens::Ring<8> ring;`. A power of two.
template <u32 Warps, u32 Slots = WARPLENS_RING_SLOTS>
struct alignas(Slots *layout::kRingRecord) Ring {
  static_assert(Slots != 0 && (Slots & (Slots - 1)) == 0, "the slots of a ring are a power of two");
  u64 records[Warps][Slots];
};

struct Token {
  u32 begin;
};

// One per thread, in registers: pass it by reference to inlined functions only.
template <bool Enabled = kEnabledByDefault, u32 RingSlots = 0, u32 Clock = WARPLENS_CLOCK,
          bool Generation = (WARPLENS_GENERATION != 0)>
class Profiler {
 public:
  // `records`: whether this warp takes part, besides the options of the buffer; lane 0 decides.
  WARPLENS_DEVICE explicit Profiler(void *buffer, bool records = true) {
    static_assert(RingSlots == 0, "a profiler with a ring takes the ring: Profiler prof(buffer, ring)");
    if constexpr (Enabled) begin(buffer, records, ~0u, 0);
  }

  // Records into shared memory, and from there into the buffer at the end.
  template <u32 Warps>
  WARPLENS_DEVICE Profiler(void *buffer, Ring<Warps, RingSlots> &ring, bool records = true) {
    if constexpr (Enabled) begin(buffer, records, Warps, machine::ring_address(ring));
  }

  Profiler(const Profiler &) = delete;
  Profiler &operator=(const Profiler &) = delete;

  WARPLENS_DEVICE ~Profiler() { finish(); }

  // Opens a region that `stop` closes. Regions by token may cross each other.
  WARPLENS_DEVICE Token start() const {
    if constexpr (Enabled) return {machine::stamp<Clock>()};
    return {0};
  }

  template <class Tag>
  WARPLENS_DEVICE void stop(Token token, Tag tag) {
    close<layout::kByToken>(token.begin, tag, 0);
  }

  template <class Tag, class Payload>
  WARPLENS_DEVICE void stop(Token token, Tag tag, Payload payload) {
    close<layout::kByToken | layout::kHasPayload>(token.begin, tag, static_cast<u32>(payload));
  }

  template <class Tag>
  WARPLENS_DEVICE void mark(Tag tag) {
    close<layout::kMark>(moment(), tag, 0);
  }

  template <class Tag, class Payload>
  WARPLENS_DEVICE void mark(Tag tag, Payload payload) {
    close<layout::kMark | layout::kHasPayload>(moment(), tag, static_cast<u32>(payload));
  }

  // Ends the unit; later regions are not recorded. The destructor does it, so this is for ending before the kernel does.
  WARPLENS_DEVICE void finish() {
    if constexpr (Enabled) {
      if constexpr (RingSlots != 0) flush();
      if (limit_ != 0) end();
      limit_ = 0;
    }
  }

  // What Region calls; the flags are of layout.
  template <u32 Flags, class Tag>
  WARPLENS_DEVICE void close(u32 began, Tag tag, u32 payload) {
    if constexpr (!Enabled) {
    } else if constexpr (RingSlots != 0) {
      const u32 word = static_cast<u32>(tag) << 24;
      machine::ring_record<Clock, RingSlots * layout::kRingRecord>(ring_, cursor_, limit_, began, word);
    } else {
      u32 word = (static_cast<u32>(tag) & 0xFFFF) | Flags;
      if constexpr (Generation) word |= generation_;
      constexpr bool HasPayload = (Flags & layout::kHasPayload) != 0, IsMark = (Flags & layout::kMark) != 0;
      machine::record<Clock, HasPayload, IsMark>(records_, cursor_, limit_, began, word, payload);
    }
  }

 private:
  // A record in the slice stamps a mark itself.
  WARPLENS_DEVICE static u32 moment() {
    if constexpr (Enabled && RingSlots != 0) return machine::stamp<Clock>();
    return 0;
  }

  WARPLENS_DEVICE void begin(void *buffer, bool records, u32 rings, machine::RingAddress ring) {
    records_ = machine::kAddressIsFree ? machine::global_address(buffer) : 0;
    cursor_ = 0;
    limit_ = 0;
    generation_ = 0;
    ring_ = ring;
    if (buffer != nullptr && records && machine::lane() == 0) open(machine::global_address(buffer), rings);
  }

  // Fields are read where they are needed, which takes few registers: a small kernel would feel more.
  WARPLENS_DEVICE void open(u64 header, u32 rings) {
    const u64 head = machine::load2<layout::kMagicAt>(header);
    if (static_cast<u32>(head) != layout::kBufferMagic || (head >> 32 & 0xFFFF) != layout::kVersion) return;
    if (machine::load1<layout::kUnitsAt>(header) == 0) return;

    u32 cta = machine::linear_cta();
    const u32 every = machine::load1<layout::kEveryAt>(header);
    if (every > 1) {
      const u32 sampled = cta / every;
      if (sampled * every != cta) return;
      cta = sampled;
    }
    u32 index = machine::warp_in_cta();
    const u64 mask = machine::load2<layout::kMaskAt>(header);
    if (mask != 0) {
      const u64 up_to_ours = index < 64 ? mask << (63 - index) : 0;
      if (static_cast<long long>(up_to_ours) >= 0) return;
      index = machine::count(up_to_ours) - 1;
    }

    const u32 warps = machine::load1<layout::kWarpsAt>(header);
    if (index >= warps) return;
    const u32 mode = machine::load1<layout::kModeAt>(header);
    const bool ours = index < rings && is_mine(mode) &&
                      (RingSlots == 0 || machine::load1<layout::kSlotsAt>(header) == RingSlots);
    ring_ += index * RingSlots * layout::kRingRecord;
    u64 unit = layout::kMismatch;
    if (ours) unit = claims(mode) ? machine::claim<layout::kClaimedAt>(header) : u64{cta} * warps + index;
    if (unit >= machine::load1<layout::kUnitsAt>(header)) {
      // Of claims the counter itself says how many.
      if (!ours || !claims(mode))
        machine::raise<layout::kWantedAt>(
            header, u64{machine::load1<layout::kGenerationAt>(header)} << 32 | static_cast<u32>(unit + 1));
      return;
    }
    if (machine::load1<layout::kClockAt>(header) != Clock)
      machine::store(header + layout::kClockAt, Clock);  // whatever was expected
    const u32 first =
        static_cast<u32>(unit) * (machine::load1<layout::kStrideAt>(header) / layout::kRecord) + kFirst;
    const u64 slice = header + u64{first} * layout::kRecord;
    if constexpr (RingSlots != 0) {
      records_ = slice;
      limit_ = RingSlots;
    } else {
      records_ = header;
      cursor_ = first;
      limit_ = first + machine::load1<layout::kSlotsAt>(header);
    }
    describe(machine::load1<layout::kGenerationAt>(header), slice - layout::kUnitHeader);
  }

  WARPLENS_DEVICE void describe(u32 generation, u64 slice) {
    if constexpr (Generation) generation_ = generation << 24 | layout::kHasGeneration;
    machine::store(slice + 32, machine::nanoseconds());
    machine::store(slice + 40, u64{0});
    machine::store(slice, layout::kUnitMagic, layout::kVersion);
    machine::store(slice + 8, generation, machine::linear_cta());
    machine::store(slice + 16, machine::warp_in_cta(), machine::multiprocessor());
    machine::store(slice + 24, u64{0});
    machine::store(slice + 56, u64{0});
    machine::store(slice + 48, machine::cycles());
  }

  WARPLENS_DEVICE static bool claims(u32 mode) {
#ifdef WARPLENS_MODE
    return WARPLENS_MODE == static_cast<u32>(Mode::claim);
#else
    return RingSlots == 0 && mode == static_cast<u32>(Mode::claim);
#endif
  }

  // A buffer made for another mode would be read wrongly.
  WARPLENS_DEVICE static bool is_mine(u32 mode) {
    if constexpr (RingSlots != 0) return mode == static_cast<u32>(Mode::ring);
#ifdef WARPLENS_MODE
    return mode == WARPLENS_MODE;
#else
    return mode <= static_cast<u32>(Mode::claim);
#endif
  }

  // The lanes of the warp that end together copy its ring. They need not be all: warps, and lanes, may leave early.
  WARPLENS_DEVICE void flush() {
    const u32 lanes = machine::together();
    if ((lanes & 1) == 0) return;
    const u32 cursor = machine::from_lane(lanes, cursor_, 0);
    const u32 limit = machine::from_lane(lanes, limit_, 0);
    const u32 low = machine::from_lane(lanes, static_cast<u32>(records_), 0);
    const u32 high = machine::from_lane(lanes, static_cast<u32>(records_ >> 32), 0);
    const auto ring = machine::ring_from_lane(lanes, ring_, 0);
    const u32 room = limit * layout::kRingRecord, kept = cursor < room ? cursor : room,
              step = machine::count(lanes) * layout::kRingRecord;
    for (u32 at = machine::count(lanes & machine::lanes_below()) * layout::kRingRecord; at < kept; at += step)
      machine::store((u64{high} << 32 | low) + at, machine::ring_read(ring, at));
  }

  WARPLENS_DEVICE void end() {
    u64 slice = records_ - layout::kUnitHeader;
    u32 wanted = cursor_ / layout::kRingRecord;
    if constexpr (RingSlots == 0) {
      const u32 first =
          limit_ - machine::load1<layout::kSlotsAt>(records_);  // read again: no register for it until here
      slice += u64{first} * layout::kRecord;
      wanted = cursor_ - first;
    }
    machine::store(slice + 24, machine::multiprocessor(), wanted);
    machine::store(slice + 40, machine::nanoseconds());
    machine::store(slice + 56, machine::cycles());
    machine::store(slice + 4, layout::kVersion | layout::kUnitEnded);
  }

  // Places are steps of 16 bytes from the buffer's address, which is often a parameter of the kernel and then needs no register.
  // Buffers end before 32 GiB: so 32 bits hold them, and as many records again that are dropped.
  static constexpr u32 kFirst = (layout::kBufferHeader + layout::kUnitHeader) / layout::kRecord;

  // All but the first three are left out by the compiler where nothing reads them.
  u64 records_;  // the buffer; with a ring the first record of this warp's unit, which only lane 0 knows
  u32 cursor_;  // the next record's place (ring: bytes so far): goes on where there is no room, which counts what was dropped
  u32 limit_;       // the place behind the last record (ring: the unit's slots); 0 where nothing is recorded
  u32 generation_;  // as it stands in a record's word
  machine::RingAddress ring_;
};

Profiler(void *) -> Profiler<>;
Profiler(void *, bool) -> Profiler<>;
template <u32 Warps, u32 Slots>
Profiler(void *, Ring<Warps, Slots> &) -> Profiler<kEnabledByDefault, Slots>;
template <u32 Warps, u32 Slots>
Profiler(void *, Ring<Warps, Slots> &, bool) -> Profiler<kEnabledByDefault, Slots>;

// From here to the end of the block: `warplens::Region region(prof, Tag::load);`, with a payload `(prof, Tag::load, k)`.
template <class AnyProfiler, class Tag, bool HasPayload>
class Region {
 public:
  WARPLENS_DEVICE Region(AnyProfiler &profiler, Tag tag)
      : profiler_(profiler), tag_(tag), payload_(0), begin_(profiler.start().begin) {}
  template <class Payload>
  WARPLENS_DEVICE Region(AnyProfiler &profiler, Tag tag, Payload payload)
      : profiler_(profiler), tag_(tag), payload_(static_cast<u32>(payload)), begin_(profiler.start().begin) {}
  Region(const Region &) = delete;
  Region &operator=(const Region &) = delete;

  WARPLENS_DEVICE ~Region() {
    profiler_.template close<HasPayload ? layout::kHasPayload : 0>(begin_, tag_, payload_);
  }

 private:
  AnyProfiler &profiler_;
  Tag tag_;
  u32 payload_;
  u32 begin_;
};

template <class AnyProfiler, class Tag>
Region(AnyProfiler &, Tag) -> Region<AnyProfiler, Tag, false>;
template <class AnyProfiler, class Tag, class Payload>
Region(AnyProfiler &, Tag, Payload) -> Region<AnyProfiler, Tag, true>;

}  // namespace warplens

#define WARPLENS_JOIN_(a, b) a##b
#define WARPLENS_JOIN(a, b) WARPLENS_JOIN_(a, b)

#ifdef __COUNTER__
#define WARPLENS_UNIQUE __COUNTER__
#else
#define WARPLENS_UNIQUE __LINE__  // NVRTC has no counter
#endif

// Times the rest of the block: (profiler, tag) or (profiler, tag, payload).
#define WARPLENS_REGION(...) \
  [[maybe_unused]] const ::warplens::Region WARPLENS_JOIN(warplens_region_, WARPLENS_UNIQUE)(__VA_ARGS__)

// The names of a kernel's regions: an enum that the host reads from this line (warplens.intrakernel.dsl.cuda.tags).
#define WARPLENS_TAGS(type, ...) enum class type : ::warplens::u16 { __VA_ARGS__ };
