// Remembers recent calls, to check GPU work, and recent GPU work, to drop duplicates.
// Both forget old entries: a hit is always right, a miss may be wrong.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "spool/system/memory.h"

namespace warplens::agent {

class CudaSeen {
 public:
  struct Call {
    uint64_t start;
    uint32_t correlation;
    bool outside;  // of all windows, from its begin to its end
    bool used;
  };

  CudaSeen() = default;
  CudaSeen(const CudaSeen &) = delete;
  CudaSeen &operator=(const CudaSeen &) = delete;
  ~CudaSeen() { clear(); }

  //! CUPTI may begin to count anew.
  void clear() {
    release(calls_, kCalls * sizeof(CallPair));
    release(work_, kWork * sizeof(uint64_t));
    calls_ = nullptr;
    work_ = nullptr;
  }

  //! [HOT] False when the same call was seen before.
  bool add_call(bool runtime, uint32_t correlation, uint64_t start, bool outside) {
    if (calls_ == nullptr &&
        (calls_ = static_cast<CallPair *>(map_memory(kCalls * sizeof(CallPair)))) == nullptr) {
      return true;
    }
    Call &call = calls_[correlation % kCalls].call[runtime ? 1 : 0];
    if (call.used && call.correlation == correlation && call.start == start) {
      return false;
    }
    call = {start, correlation, outside, true};
    return true;
  }

  //! [HOT] The call of GPU work, or null.
  const Call *call_of(uint32_t correlation) const {
    if (calls_ != nullptr) {
      const CallPair &pair = calls_[correlation % kCalls];
      for (int i : {1, 0}) {
        if (pair.call[i].used && pair.call[i].correlation == correlation) {
          return &pair.call[i];
        }
      }
    }
    return nullptr;
  }

  //! [HOT] False when it was seen before. `more` tells apart the work of one call: the node of a graph.
  bool add_work(uint32_t kind, uint32_t correlation, uint32_t stream, uint64_t start, uint64_t end,
                uint64_t more) {
    if (work_ == nullptr &&
        (work_ = static_cast<uint64_t *>(map_memory(kWork * sizeof(uint64_t)))) == nullptr) {
      return true;
    }
    uint64_t key = (start * 0x9e3779b97f4a7c15u ^ correlation) * 0xbf58476d1ce4e5b9u;
    key = (key ^ key >> 32 ^ end ^ more << 7) * 0x94d049bb133111ebu;
    key = (key ^ key >> 29 ^ (uint64_t{stream} << 8 | kind)) * 0xbf58476d1ce4e5b9u | 1;
    // Nodes of a graph have numbers in a row, as its launches have: a sum of them would meet in one place.
    uint64_t &place = work_[(correlation + (more * 0x9e3779b97f4a7c15u >> 32)) % kWork];
    if (place == key) {
      return false;
    }
    place = key;
    return true;
  }

 private:
  static constexpr size_t kCalls = 16384;
  static constexpr size_t kWork = 32768;
  struct CallPair {
    Call call[2];  // of the driver, of the runtime
  };
  static void release(void *at, size_t size) {
    if (at != nullptr) {
      unmap_memory(at, size);
    }
  }

  CallPair *calls_ = nullptr;
  uint64_t *work_ = nullptr;
};

}  // namespace warplens::agent
