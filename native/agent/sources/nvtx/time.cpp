// Converts times of the program's own clocks.
// A clock that the program lets us read is read when it is registered and when it is used; two
// readings give its rate.
#include "time.h"

#include <algorithm>
#include <cmath>

#include "agent/sources/nvtx/extension/extension.h"
#include "define.h"
#include "event.h"
#include "registry.h"

namespace warplens::agent {
namespace {

// Times of two clocks at the same moment, and how fast the second runs against the first.
struct Tie {
  uint64_t to = 0;  // the second clock; kOurs: ours
  int64_t from_time = 0;
  int64_t to_time = 0;
  double slope = 1;
  bool has_slope = false;
};
constexpr uint64_t kOurs = NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED;

struct TimeDomain {
  uint64_t type = 0;       // the predefined clock, 0 = none
  int64_t resolution = 0;  // ticks a second
};
struct Source {
  int64_t (*plain)() = nullptr;
  int64_t (*with_data)(void *) = nullptr;
  void *data = nullptr;
  int64_t first = 0;
  uint64_t first_ours = 0;

  int64_t read() const { return plain != nullptr ? plain() : with_data(data); }
};

Registry<TimeDomain> g_time_domains;
Registry<Source> g_sources;
Registry<Tie> g_ties;

constexpr int64_t kSecond = 1'000'000'000;

// Not llround: nothing else here needs libm, and to map that costs each short process more than a good part of its recording.
int64_t nearest(double value) {
  if (!(std::fabs(value) < 0x1p63)) {
    return INT64_MIN;
  }
  auto whole = static_cast<int64_t>(value);
  double rest = value - static_cast<double>(whole);
  return whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0);
}

// What a clock of the system shows minus ours, now. False where that has no meaning.
bool system_offset(uint64_t type, uint64_t now, int64_t &offset, double &unit) {
  int64_t epoch = 0;  // of the clock, in s since 1970
  unit = 1;
  clockid_t id = CLOCK_REALTIME;
  switch (type) {
    case NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC:
    case NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC_COARSE:
    case NVTX_TIMESTAMP_TYPE_CPP_STEADY_CLOCK:
      offset = 0;
      return true;
    case NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_MONOTONIC_RAW:
      id = CLOCK_MONOTONIC_RAW;
      break;
    case NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_BOOTTIME:
      id = CLOCK_BOOTTIME;
      break;
    case NVTX_TIMESTAMP_TYPE_C_TIME:
      unit = static_cast<double>(kSecond);
      break;
    case NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_REALTIME:
    case NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_REALTIME_COARSE:
    case NVTX_TIMESTAMP_TYPE_C_TIMESPEC_GET:
    case NVTX_TIMESTAMP_TYPE_CPP_SYSTEM_CLOCK:
    case NVTX_TIMESTAMP_TYPE_CPP_HIGH_RESOLUTION_CLOCK:
      break;
    case NVTX_TIMESTAMP_TYPE_CPP_UTC_CLOCK:
      epoch = -27;  // it counts leap seconds: 27 so far
      break;
    case NVTX_TIMESTAMP_TYPE_CPP_TAI_CLOCK:
      epoch = -378691210 - 27;  // 1958, and 10 s
      break;
    case NVTX_TIMESTAMP_TYPE_CPP_GPS_CLOCK:
      epoch = 315964809 - 27;  // 1980
      break;
    case NVTX_TIMESTAMP_TYPE_CPP_FILE_CLOCK:
      epoch = 6437664000;  // 2174, with GCC's library
      break;
    default:
      return false;
  }
  offset = static_cast<int64_t>(clock_ns(id) - now) - epoch * kSecond;
  return true;
}

}  // namespace

TimeConversion::TimeConversion(const ClockParams &clock, uint16_t domain, uint64_t id) : now_(now_ns(clock)) {
  constexpr int kMostTies = 4;
  double slope = 1;   // clock of `id` now against the one we have come to
  int64_t base = 0;   // time of `id` …
  int64_t there = 0;  // … and of the other at the same moment
  for (int i = 0; i < kMostTies && !known_; ++i) {
    int64_t offset = 0;
    double unit = 1;
    if (const Source *source = g_sources.find(domain, id)) {
      int64_t time = source->read();
      now_ = now_ns(clock);
      int64_t passed = time - source->first;
      double rate =
          passed == 0 ? 1 : static_cast<double>(now_ - source->first_ours) / static_cast<double>(passed);
      offset = static_cast<int64_t>(now_) + nearest(static_cast<double>(there - time) * rate);
      slope *= rate;
      there = offset;
      known_ = true;
    } else if (id == 0 || id == kOurs) {
      known_ = true;
    } else if (id == NVTX_TIMESTAMP_TYPE_CPU_TSC && clock.kind != ClockKind::monotonic) {
      slope *= static_cast<double>(clock.mult) / static_cast<double>(uint64_t{1} << clock.shift);
      there = i == 0 ? static_cast<int64_t>(clock.base_ns)
                     : static_cast<int64_t>(to_ns(clock, static_cast<uint64_t>(there)));
      base = i == 0 ? static_cast<int64_t>(clock.t0) : base;
      known_ = true;
    } else if (system_offset(id, now_, offset, unit)) {
      slope *= unit;
      there = static_cast<int64_t>(static_cast<double>(there) * unit) - offset;
      known_ = true;
    } else if (const Tie *tie = g_ties.find(domain, id)) {
      if (i == 0) {
        base = tie->from_time;
        there = tie->to_time;
      } else {
        there = tie->to_time + nearest(static_cast<double>(there - tie->from_time) * tie->slope);
      }
      slope *= tie->slope;
      id = tie->to;
    } else if (const TimeDomain *known = g_time_domains.find(domain, id);
               known != nullptr && known->type != 0) {
      id = known->type;
    } else {
      break;
    }
  }
  base_ = base;
  base_ours_ = there;
  slope_ = slope;
}

bool TimeConversion::operator()(int64_t time, uint64_t &out) const {
  int64_t passed = time - base_;
  int64_t ours = base_ours_ + (slope_ == 1 ? passed : nearest(static_cast<double>(passed) * slope_));
  out = static_cast<uint64_t>(ours);
  constexpr int64_t kAhead = 60 * kSecond;  // another clock may be a little fast
  if (known_ && ours > 0 && ours < static_cast<int64_t>(now_) + kAhead) {
    return true;
  }
  out = now_;
  return false;
}

namespace {

using Domain = nvtxDomainHandle_t;

uint64_t register_time_domain(Domain handle, const nvtxTimeDomainAttr_t *attributes) {
  return attributes == nullptr ? 0 : guarded(uint64_t{0}, [&] {
    uint64_t id = attributes->timeDomainId >= kStaticIds ? attributes->timeDomainId : new_id();
    g_time_domains.insert(domain_of(handle), id, {attributes->timestampTypeId, attributes->timerResolution});
    Json json("time_domain");
    json.member("timestamp_type", attributes->timestampTypeId);
    json.member("scope", attributes->scopeId);
    json.member("flags", attributes->timerFlags);
    json.member("resolution", attributes->timerResolution);
    json.member("start", attributes->timerStart);
    define(domain_of(handle), Kind::time_domain, id, json.close());
    return id;
  });
}

void add_source(Domain handle, uint64_t id, Source source) {
  if (source.plain != nullptr || source.with_data != nullptr) {
    source.first = source.read();
    source.first_ours = now_ns(process_clock());
    g_sources.insert(domain_of(handle), id, std::move(source));
  }
}

// Of two clocks that are tied, the registered one is the one we want to get away from.
void add_tie(Domain handle, uint64_t from, uint64_t to, int64_t from_time, int64_t to_time, double slope,
             bool has_slope) {
  uint16_t domain = domain_of(handle);
  if (from < kStaticIds && from != NVTX_TIMESTAMP_TYPE_NONE && to >= kStaticIds) {
    std::swap(from, to);
    std::swap(from_time, to_time);
    slope = has_slope && slope != 0 ? 1 / slope : 1;
  }
  if (from == to) {
    return;
  }
  Tie tie{to, from_time, to_time, slope, has_slope};
  const Tie *before = g_ties.find(domain, from);
  if (!has_slope && before != nullptr && before->to == to) {
    // Two points make a line; further ones change where it passes, and its slope over the whole distance.
    if (before->from_time != from_time) {
      tie.slope =
          static_cast<double>(to_time - before->to_time) / static_cast<double>(from_time - before->from_time);
    } else {
      tie.slope = before->slope;
    }
  } else if (!has_slope) {
    const TimeDomain *known = g_time_domains.find(domain, from);
    if (known != nullptr && known->resolution > 0) {
      tie.slope = static_cast<double>(kSecond) / static_cast<double>(known->resolution);
    }
  }
  g_ties.insert(domain, from, std::move(tie));
}

}  // namespace

void fill_time(Slots slots) {
  slots.set(NVTX3EXT_CBID_nvtxTimestampGet, +[]() { return static_cast<int64_t>(now_ns(process_clock())); });
  slots.set(NVTX3EXT_CBID_nvtxTimeDomainRegister, register_time_domain);
  slots.set(
      NVTX3EXT_CBID_nvtxTimerSource, +[](Domain domain, uint64_t id, uint64_t, int64_t (*read)()) {
        add_source(domain, id, {read, nullptr, nullptr, 0, 0});
      });
  slots.set(
      NVTX3EXT_CBID_nvtxTimerSourceWithData,
      +[](Domain domain, uint64_t id, uint64_t, int64_t (*read)(void *), void *data) {
        add_source(domain, id, {nullptr, read, data, 0, 0});
      });
  slots.set(
      NVTX3EXT_CBID_nvtxTimeSyncPoint,
      +[](Domain domain, uint64_t one, uint64_t two, int64_t time_one, int64_t time_two) {
        add_tie(domain, one, two, time_one, time_two, 1, false);
      });
  slots.set(
      NVTX3EXT_CBID_nvtxTimeSyncPointTable,
      +[](Domain domain, uint64_t from, uint64_t to, const nvtxSyncPoint_t *points, size_t count) {
        // The first and the last: the longest line.
        if (points != nullptr && count != 0) {
          add_tie(domain, from, to, points[0].src, points[0].dst, 1, false);
          add_tie(domain, from, to, points[count - 1].src, points[count - 1].dst, 1, false);
        }
      });
  slots.set(
      NVTX3EXT_CBID_nvtxTimestampConversionFactor,
      +[](Domain domain, uint64_t from, uint64_t to, double slope, int64_t from_time, int64_t to_time) {
        add_tie(domain, from, to, from_time, to_time, slope, true);
      });
}

}  // namespace warplens::agent
