// Detects another tool that took CUPTI over, by a traced call that the agent makes.
// Since CUDA 13 its record is in a separate buffer, which no GPU work holds back, so it comes with
// the next flush unless another tool gets the records or has switched them off. Before, all threads
// share a buffer, which may be held back: then the record is searched in it.
#include "canary.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "agent/python/memory/memory.h"
#include "agent/source.h"
#include "spool/system/clock.h"
#include "state.h"

namespace warplens::agent {
namespace {

constexpr uint64_t kQuietMs = 1000;
constexpr unsigned kMisses = 2;
constexpr unsigned kMissesFromTheStart = 5;
constexpr unsigned kNever = UINT_MAX;
constexpr uint64_t kInexact = 1'000'000;
constexpr size_t kPeek = 1024;

// Copies, for another tool may have freed the memory. Of our thread alone.
alignas(8) uint8_t g_copy[CuptiBuffers::kSize];

bool copy(const uint8_t *buffer, size_t size) {
  return copy_memory(g_copy, reinterpret_cast<uintptr_t>(buffer), size);
}

template <typename T>
T at(size_t offset) {
  T value;
  std::memcpy(&value, g_copy + offset, sizeof(value));
  return value;
}

uint32_t gate() {
  const ControlPage *control = g_cupti.control;
  return control != nullptr ? control->gate.load(std::memory_order_acquire) : 0;
}

// Whether a buffer begins with records of the agent's calls and holds nothing behind them.
bool is_ours_alone() {
  const CuptiState &state = g_cupti;
  size_t overhead = state.cupti.version >= kCuptiSinceOverheadCorrelation
                        ? sizeof(CuptiOverheadActivity)
                        : offsetof(CuptiOverheadActivity, correlation);
  size_t place = 0;
  while (place + sizeof(CuptiOverheadActivity) <= kPeek) {
    auto call = at<CuptiApiActivity>(place);
    if (call.kind == kCuptiOverhead) {
      place += overhead;
    } else if (call.kind == kCuptiDriver && call.cbid == kCuptiDeviceGetCount &&
               call.tid == state.thread_id.load(std::memory_order_relaxed)) {
      place += sizeof(call);
    } else {
      break;
    }
  }
  return std::all_of(g_copy + place, g_copy + kPeek, [](uint8_t byte) { return byte == 0; });
}

}  // namespace

bool has_cupti_records() {
  return g_cupti.buffers.any_taken([](const uint8_t *buffer) {
    bool copied = copy(buffer, kPeek);
    return copied ? !is_ours_alone() : memory_denied() != 0;
  });
}

CuptiCanary::CuptiCanary()
    : call_(find_device_count()),
      first_news_(g_cupti.news.load()),
      quiet_since_(monotonic_ms()),
      is_readable_(memory_denied() == 0) {}

bool CuptiCanary::is_due() {
  const CuptiState &state = g_cupti;
  uint64_t now = monotonic_ms();
  if (uint64_t news = state.news.load(std::memory_order_relaxed); news != seen_ || !state.canary_is_on) {
    seen_ = news;
    quiet_since_ = now;
    misses_ = 0;
    told_ = false;
  }
  uint64_t usual = state.settings.flush_ms;
  bool quiet = now - std::max(quiet_since_, sung_at_) >= std::max(kQuietMs, usual);
  return usual != 0 && !told_ && state.canary_is_on && (quiet || !tried_);
}

void CuptiCanary::sing() {
  const CuptiState &state = g_cupti;
  sung_ = false;
  if (!state.canary_is_on || call_ == nullptr) {
    return;
  }
  gate_ = gate();
  canaries_ = state.canaries.load();
  news_ = state.news.load();
  dropped_ = state.dropped.load();
  sung_at_ = monotonic_ms();
  int count = 0;
  begin_ns_ = now_ns(process_clock());
  sung_ = call_(&count) == kCudaSuccess;
  tried_ = true;
  end_ns_ = now_ns(process_clock());
}

// CUPTI was without memory, or the kinds were switched meanwhile.
bool CuptiCanary::was_disturbed() const {
  const CuptiState &state = g_cupti;
  return state.dropped.load() != dropped_ || gate() != gate_ || !is_cupti_usable();
}

bool CuptiCanary::is_in_a_buffer() const {
  const CuptiState &state = g_cupti;
  if (!is_readable_) {
    return state.cupti.version < kCupti130;  // it may be
  }
  auto offset = static_cast<uint64_t>(state.offset.load());
  uint32_t thread = state.thread_id.load();
  return g_cupti.buffers.any_taken([&](const uint8_t *buffer) {
    if (!copy(buffer, CuptiBuffers::kSize)) {
      return false;
    }
    for (size_t place = 0; place + sizeof(CuptiApiActivity) <= CuptiBuffers::kSize; place += 8) {
      if (at<CuptiKind>(place) == kCuptiDriver) {
        auto call = at<CuptiApiActivity>(place);
        uint64_t start = call.start + offset;
        if (call.cbid == kCuptiDeviceGetCount && call.tid == thread && start + kInexact >= begin_ns_ &&
            start <= end_ns_ + kInexact) {
          return true;
        }
      }
    }
    return false;
  });
}

// How often in a row it must be missing. Where other records come but it never has, this CUPTI does not know such a call.
unsigned CuptiCanary::enough(bool last) const {
  if (was_heard_) {
    return last ? 1 : kMisses;
  }
  if (g_cupti.news.load() == first_news_) {
    return kMissesFromTheStart;
  }
  return last && g_cupti.settings.flush_ms == 0 ? 1 : kNever;  // nobody has looked before
}

void CuptiCanary::listen(bool last) {
  CuptiState &state = g_cupti;
  if (!sung_) {
    return;
  }
  sung_ = false;
  was_heard_ = was_heard_ || state.canaries.load() != canaries_;
  bool heard = state.canaries.load() != canaries_ || state.news.load() != news_;
  if (heard || was_disturbed() || is_in_a_buffer()) {
    misses_ = heard ? 0 : misses_;
    return;
  }
  if (++misses_ >= enough(last)) {
    told_ = true;
    cupti_notice(CudaNotice::stolen, static_cast<int64_t>((monotonic_ms() - quiet_since_) * 1'000'000), "");
  }
}

}  // namespace warplens::agent
