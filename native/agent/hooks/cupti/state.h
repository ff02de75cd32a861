// The shared state of the dispatcher's parts: one recording of CUDA in this process at a time.
#pragma once

#include <atomic>

#include "buffers.h"
#include "cupti_source.h"
#include "library.h"

namespace warplens::agent {

// A lock that nobody waits for without end: CUPTI may hang while another thread has it.
class BriefLock {
 public:
  bool take(unsigned patience_ms);
  void give() { taken_.store(0, std::memory_order_release); }
  void renew() { taken_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<uint32_t> taken_{0};
};

enum class CuptiStage : uint32_t {
  never,  // not used in this process so far
  on,
  off,  // it was used, and may be again
  dead  // never again: it hangs, gave up, or is another process's
};

// What the thread is asked to do, the last of them for good.
enum class CuptiRequest : uint32_t { none, detach, finish };

struct CuptiState {
  // Wiped in a fork child: 1 in the process that uses CUPTI.
  std::atomic<uint32_t> *alive = nullptr;
  std::atomic<CuptiStage> stage{CuptiStage::never};
  std::atomic<ProcessLog *> log{nullptr};  // null: nothing is recorded
  ControlPage *control = nullptr;          // of that recording
  Cupti cupti{};
  CudaSettings settings{};
  CuptiLibrary *library = nullptr;  // once it is loaded; never freed
  CuptiBuffers buffers;

  bool clock_is_ours = false;  // CUPTI has our timestamp callback, for good
  bool clock_is_judged = false;
  std::atomic<bool> is_converted{false};
  std::atomic<int64_t> offset{0};

  BriefLock life;                 // begins and ends recordings
  BriefLock switching;            // of the kinds
  uint32_t ended_generation = 0;  // of the last recording that was detached
  std::atomic<bool> kinds_on{false};
  std::atomic<bool> stays_on{false};  // kinds are not switched off any more
  std::atomic<bool> follows{false};   // kinds follow the windows
  std::atomic<bool> has_context{false};
  std::atomic<bool> um_is_on{false};
  std::atomic<bool> canary_is_on{false};  // our own call is traced

  std::atomic<uint64_t> batches{0};  // with records, so far
  std::atomic<uint64_t> news{0};     // of those the ones with more than what our own thread causes
  std::atomic<uint64_t> canaries{0};
  std::atomic<uint64_t> dropped{0};              // records, by CUPTI
  std::atomic<bool> forcing{false};              // a forced flush is under way
  std::atomic<uint8_t> forwarded[2][2048] = {};  // API calls that the source wants to hear of, by domain - 1

  std::atomic<bool> has_thread{false};
  std::atomic<uint32_t> thread_id{0};
  std::atomic<uint32_t> request{0};   // a CuptiRequest
  std::atomic<uint32_t> answered{0};  // the last one that was done
  std::atomic<uint32_t> knock{0};     // what the thread waits at, where there is no gate
  std::atomic<uint32_t> fetches_wanted{0};
  std::atomic<uint32_t> fetches_done{0};  // of those
};

extern constinit CuptiState g_cupti;  // never destroyed: CUPTI may call until the very end

//! [HOT] Whether CUPTI may be called, here and now.
inline bool is_cupti_usable() {
  const CuptiState &state = g_cupti;
  return state.alive != nullptr && state.alive->load(std::memory_order_relaxed) == 1 &&
         state.stage.load(std::memory_order_acquire) == CuptiStage::on;
}

void cupti_notice(CudaNotice notice, int64_t value, const char *text);
uint64_t monotonic_ms();

// cupti_collect.cpp
void register_cupti_buffers();
//! [CUPTI thread] Only there: two flushes at a time could wait for each other, and one may never return.
void flush_cupti(uint32_t flags);
//! [CUPTI thread] Whether a buffer that CUPTI has holds more than what our own thread causes, as far as can be seen.
bool has_cupti_records();

// cupti_clock.cpp
//! Before subscribing, in cuInit: CUPTI's clock becomes ours.
void give_cupti_our_clock();
//! Afterwards: whether it is, and by how much it is off where it is not. `last`: CUDA has started; CUPTI has no better excuse then.
void check_cupti_clock(bool last);
//! Looks again, for clocks drift.
void follow_cupti_clock();

// cupti_callbacks.cpp
void on_cupti_callback(void *user, CuptiDomain domain, uint32_t cbid, const void *data);
void enable_cupti_callbacks();

// cupti_windows.cpp
void begin_following_windows();
//! [MT] A window has opened or closed: switches the kinds, where they follow the windows.
void follow_windows();
//! Whether the kinds are to be on now.
bool are_kinds_wanted();

// cupti_thread.cpp
bool start_cupti_thread();
void wake_cupti_thread();
//! [MT] Has the thread fetch what is finished, and waits for that, but not for long.
void fetch_cupti_records();
//! Waits until the thread has done it, as long as it gets on and `patience_ms` at most; false where it has not.
bool ask_cupti_thread(CuptiRequest request, unsigned patience_ms);

}  // namespace warplens::agent
