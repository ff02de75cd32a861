// Chooses the records of a batch that belong to the capture's windows.
#pragma once

#include <algorithm>

#include "spool/window.h"

namespace warplens::agent {

class CudaWindows {
 public:
  //! As they are now: whatever a batch holds was over before it came. Null: everything is asked for.
  explicit CudaWindows(ControlPage *control) : control_(control) {
    if (control == nullptr) {
      return;
    }
    gate_ = std::min(settle_windows(control), static_cast<uint32_t>(2 * kWindows));
    if (gate_ != 0) {
      const CaptureWindow *windows = windows_of(control);
      const CaptureWindow &last = windows[(gate_ - 1) / 2];
      first_ = windows[0].open_ns.load(std::memory_order_relaxed);
      open_ = last.open_ns.load(std::memory_order_relaxed);
      close_ = last.close_ns.load(std::memory_order_relaxed);
    }
  }

  //! [HOT] What happens on the host is asked for where it overlaps a window.
  bool keeps(uint64_t start, uint64_t end) const {
    if (control_ == nullptr || (gate_ % 2 != 0 && open_ != 0 && end > open_)) [[likely]] {
      return true;
    }
    bool clipped = false;
    return gate_ != 0 && (gate_ % 2 != 0 || start < close_) &&
           window_around(control_, start, end, &clipped) != 0;
  }

  //! [HOT] GPU work is recorded if a window was open at its launch, which may be long ago: false where
  //! it cannot be so.
  bool may_keep_work(uint64_t start) const {
    return control_ == nullptr || (gate_ != 0 && start + kInexact >= first_);
  }

 private:
  static constexpr uint64_t kInexact = 1'000'000;  // times of GPUs are worked out, and may be off by so much
  const ControlPage *control_;
  uint32_t gate_ = 0;
  uint64_t first_ = 0;  // when the first window opened, and the last one
  uint64_t open_ = 0;
  uint64_t close_ = 0;
};

}  // namespace warplens::agent
