// Lists the threads that called CUDA, with the names that the system has for them.
// Threads that never call NVTX have no other name.
#pragma once

#include "spool/process_log.h"

namespace warplens::agent {

class CudaThreads {
 public:
  //! A recording begins: it knows none of them.
  void begin();

  //! [HOT] A call of `tid` that began at `start` is there: the first one of each writes the thread's name. One that is gone by now has
  //! none; nor have those that come after kMost.
  void see(ProcessLog &log, WideLog::Writer &writer, uint32_t tid, uint64_t start) {
    if (tid != last_) [[unlikely]] {
      last_ = tid;
      if (add(tid)) {
        write_name(log, writer, tid, start);
      }
    }
  }

 private:
  static constexpr uint32_t kPlaces = 4096;
  static constexpr uint32_t kMost = kPlaces / 2;

  //! False when it was seen before, or there is no place.
  bool add(uint32_t tid);
  static void write_name(ProcessLog &log, WideLog::Writer &writer, uint32_t tid, uint64_t start);

  uint32_t last_ = 0;
  uint32_t count_ = 0;
  uint32_t seen_[kPlaces] = {};  // 0: free
};

}  // namespace warplens::agent
