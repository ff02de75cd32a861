// Detects another tool that took CUPTI over: CUPTI itself reports nothing.
#pragma once

#include <cstdint>

#include "drivers/cuda.h"

namespace warplens::agent {

class CuptiCanary {
 public:
  CuptiCanary();

  //! Whether it is time to look: nothing has come for a while, or it is the first time.
  bool is_due();

  //! Makes one traced call on this thread, the canary. Its record must come with the flush that follows, whatever the GPU is doing.
  void sing();

  //! That flush was made: says so where the canary is missing. `last`: it was forced, and there will be no other.
  void listen(bool last);

 private:
  unsigned enough(bool last) const;
  bool was_disturbed() const;
  bool is_in_a_buffer() const;

  CudaResult (*call_)(int *);
  bool sung_ = false;
  bool tried_ = false;
  bool was_heard_ = false;  // once: this CUPTI records such a call
  uint32_t gate_ = 0;
  uint64_t begin_ns_ = 0;  // of the call
  uint64_t end_ns_ = 0;
  uint64_t sung_at_ = 0;  // ms
  uint64_t canaries_ = 0;
  uint64_t news_ = 0;
  uint64_t dropped_ = 0;
  uint64_t first_news_;
  uint64_t seen_ = 0;  // news
  uint64_t quiet_since_;
  bool is_readable_;     // our own memory
  unsigned misses_ = 0;  // in a row
  bool told_ = false;
};

}  // namespace warplens::agent
