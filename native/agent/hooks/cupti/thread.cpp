// The agent's CUPTI thread: fetches finished records, so that a kill loses little.
// No other thread waits for CUPTI.
//
// The protocol. A request is a number with the kind in its low 8 bits; a caller counts it up, stores it,
// and waits until `answered` equals it. The thread reads the value of its waiting place before the
// requests, so `knock` wakes it even if it is about to sleep. A gate does not change for a request,
// so callers wake the thread again every 5 ms. They give up when the thread has ended, brings no batch
// for kHangsAfterMs, or their patience ends: CUPTI may hang, and the program must not.
// `fetches_wanted` and `fetches_done` are the same for fetches: n callers that ask together share one.
#include <linux/futex.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "agent/hooks/intrakernel.h"
#include "canary.h"
#include "kinds.h"
#include "spool/system/clock.h"
#include "state.h"

namespace warplens::agent {
namespace {

constexpr unsigned kIdleMs = 1000;
constexpr unsigned kHangsAfterMs = 2000;      // without a single record
constexpr unsigned kStartsWithinMs = 10'000;  // CUDA starts within that; a flush during cuInit could hang
constexpr unsigned kLastWorkMs = 200;         // for GPU work that runs while a recording ends
constexpr unsigned kLastPauseUs = 4000;
// After a window: its program may be ended soon, or its files read, and most of what was launched in it has run by then.
constexpr uint64_t kAfterWindowMs = 250;
constexpr unsigned kOftenMs = 50;
constexpr unsigned kFetchPatienceMs = 200;  // of a thread of the program

void wait_at(const std::atomic<uint32_t> *word, uint32_t value, unsigned ms) {
  timespec time{ms / 1000, static_cast<long>(ms % 1000) * 1'000'000};
  syscall(SYS_futex, word, FUTEX_WAIT, value, &time, nullptr, 0);
}

void wake_at(const std::atomic<uint32_t> *word) {
  syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

// The thread wakes when a window opens or closes.
const std::atomic<uint32_t> &waiting_place() {
  CuptiState &state = g_cupti;
  return state.control != nullptr ? state.control->gate : state.knock;
}

CuptiRequest requested() {
  return static_cast<CuptiRequest>(g_cupti.request.load(std::memory_order_acquire) & 0xff);
}

void switch_late_kinds_on() {
  CuptiState &state = g_cupti;
  if (!state.um_is_on && state.kinds_on && state.switching.take(0)) {
    if (state.kinds_on && !state.um_is_on && state.has_context.load()) {
      state.um_is_on = switch_um_on(state.cupti, state.settings, cupti_notice);
    }
    state.switching.give();
  }
}

// Work that was launched while it was recorded may still run, or wait in a queue: it is waited for, but not for long. What does not
// come in time comes as it is.
void fetch_the_last(CuptiCanary &canary) {
  uint64_t begin = monotonic_ms();
  flush_cupti(0);
  while (has_cupti_records() && monotonic_ms() - begin < kLastWorkMs) {
    usleep(kLastPauseUs);
    flush_cupti(0);
  }
  flush_cupti(kCuptiFlushForced);
  canary.listen(true);
}

void let_go(CuptiCanary &canary) {
  CuptiState &state = g_cupti;
  state.follows.store(false);
  canary.sing();
  if (state.switching.take(kHangsAfterMs)) {
    if (state.kinds_on) {
      switch_kinds_off(state.cupti, state.settings);
      state.kinds_on = false;
      state.canary_is_on = false;
      state.um_is_on = false;
    }
    switch_objects_off(state.cupti);
    state.switching.give();
  }
  fetch_the_last(canary);
  CuptiStage on = CuptiStage::on;
  if (state.stage.compare_exchange_strong(on, CuptiStage::off)) {
    state.log.store(nullptr, std::memory_order_release);
    state.cupti.call->unsubscribe(state.cupti.subscriber);  // others may want it
  }
}

void answer(uint32_t asked) {
  g_cupti.answered.store(asked, std::memory_order_release);
  wake_at(&g_cupti.answered);
}

// When finished records are fetched: every so often where there are some, and at once and often after a window.
class Flushes {
 public:
  void look(CuptiCanary &canary) {
    CuptiState &state = g_cupti;
    uint64_t now = monotonic_ms();
    uint32_t gate = state.control != nullptr ? state.control->gate.load(std::memory_order_acquire) : 0;
    bool closed = gate / 2 != windows_;
    if (closed) {
      windows_ = gate / 2;
      closed_at_ = now;
      store_intrakernel_buffers(kAfterWindowMs, false);
    }
    uint64_t every = state.has_context.load() || now - began_ > kStartsWithinMs ? wait_ms() : 0;
    if (every != 0 && !started_) {
      started_ = true;
      flushed_ = now;  // the first context is just being made
    }
    bool tick = every != 0 && now - flushed_ >= every;
    uint32_t wanted = state.fetches_wanted.load(std::memory_order_acquire);
    bool asked = wanted != state.fetches_done.load(std::memory_order_relaxed);
    // Each flush makes a record: a process that does nothing would be flushed for ever for the sake of the last flush.
    bool due = tick && has_cupti_records();
    bool doubted = tick && canary.is_due();
    if (doubted) {
      canary.sing();
    }
    if (doubted || ((closed || asked || due) && state.buffers.taken() != 0)) {
      flush_cupti(0);
      flushed_ = monotonic_ms();
    }
    if (doubted) {
      canary.listen(false);
    }
    if (asked) {
      state.fetches_done.store(wanted, std::memory_order_release);
      wake_at(&state.fetches_done);
    }
  }

  // 0: only when CUPTI's buffers are full.
  unsigned wait_ms() const {
    unsigned usual = g_cupti.settings.flush_ms;
    bool often = closed_at_ != 0 && monotonic_ms() - closed_at_ < kAfterWindowMs;
    return often && (usual == 0 || usual > kOftenMs) ? kOftenMs : usual;
  }

 private:
  uint64_t began_ = monotonic_ms();
  uint64_t flushed_ = began_;
  uint64_t closed_at_ = 0;
  bool started_ = false;
  uint32_t windows_ = 0;  // that have closed
};

void look_after_it(CuptiCanary &canary, Flushes &flushes) {
  follow_windows();
  switch_late_kinds_on();
  follow_cupti_clock();
  flushes.look(canary);
}

void *run(void *) {
  prctl(PR_SET_NAME, "warplens-cuda");
  g_cupti.thread_id.store(static_cast<uint32_t>(syscall(SYS_gettid)));
  CuptiCanary canary;
  Flushes flushes;
  for (;;) {
    const std::atomic<uint32_t> &place = waiting_place();
    uint32_t value = place.load(std::memory_order_acquire);
    uint32_t asked = g_cupti.request.load(std::memory_order_acquire);
    if (asked != g_cupti.answered.load()) {
      if (requested() == CuptiRequest::detach) {
        let_go(canary);
        g_cupti.has_thread = false;
        answer(asked);
        return nullptr;
      }
      if (requested() == CuptiRequest::finish) {
        canary.sing();
        fetch_the_last(canary);
        answer(asked);
        g_cupti.has_thread = false;
        for (;;) {
          pause();  // the libraries are being taken down: CUPTI is not called any more
        }
      }
      answer(asked);
    }
    if (!is_cupti_usable()) {
      g_cupti.has_thread = false;
      return nullptr;
    }
    look_after_it(canary, flushes);
    unsigned ms = flushes.wait_ms();
    wait_at(&place, value, ms == 0 ? kIdleMs : std::min(ms, kIdleMs));
  }
}

}  // namespace

uint64_t monotonic_ms() {
  return clock_ns(CLOCK_MONOTONIC) / 1'000'000;
}

bool BriefLock::take(unsigned patience_ms) {
  uint64_t end = 0;
  for (;;) {
    uint32_t free = 0;
    if (taken_.compare_exchange_strong(free, 1, std::memory_order_acquire)) {
      return true;
    }
    if (patience_ms == 0) {
      return false;
    }
    uint64_t now = monotonic_ms();
    end = end == 0 ? now + patience_ms : end;
    if (now >= end) {
      return false;
    }
    // Not usleep: a thread of the program could be cancelled in it, within CUPTI.
    timespec pause{0, 100'000};
    syscall(SYS_nanosleep, &pause, nullptr);
  }
}

bool start_cupti_thread() {
  CuptiState &state = g_cupti;
  state.answered.store(state.request.load());
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the program's handlers run on its own threads
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  state.has_thread = true;  // before it says that it has ended
  bool runs = pthread_create(&thread, &attributes, run, nullptr) == 0;
  if (!runs) {
    state.has_thread = false;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return runs;
}

void wake_cupti_thread() {
  g_cupti.knock.fetch_add(1, std::memory_order_release);
  wake_at(&waiting_place());
}

void fetch_cupti_records() {
  CuptiState &state = g_cupti;
  if (state.thread_id.load(std::memory_order_relaxed) == static_cast<uint32_t>(syscall(SYS_gettid))) {
    return;  // it would wait for itself
  }
  uint32_t wanted = state.fetches_wanted.fetch_add(1, std::memory_order_acq_rel) + 1;
  uint64_t end = monotonic_ms() + kFetchPatienceMs;
  uint32_t done = 0;
  while (static_cast<int32_t>((done = state.fetches_done.load(std::memory_order_acquire)) - wanted) < 0 &&
         state.has_thread && monotonic_ms() < end) {
    wake_cupti_thread();
    wait_at(&state.fetches_done, done, 5);
  }
}

bool ask_cupti_thread(CuptiRequest request, unsigned patience_ms) {
  CuptiState &state = g_cupti;
  if (static_cast<CuptiRequest>(state.answered.load() & 0xff) == CuptiRequest::finish) {
    return true;  // the process ends, and there is nothing more to be had
  }
  uint32_t asked = ((state.request.load() >> 8) + 1) << 8 | static_cast<uint32_t>(request);
  state.request.store(asked, std::memory_order_release);
  uint64_t begin = monotonic_ms();
  uint64_t batches = state.batches.load(std::memory_order_relaxed);
  uint64_t progress = begin;
  uint32_t answered = 0;
  while ((answered = state.answered.load(std::memory_order_acquire)) != asked) {
    uint64_t now = monotonic_ms();
    if (uint64_t more = state.batches.load(std::memory_order_relaxed); more != batches) {
      batches = more;
      progress = now;
    }
    if (!state.has_thread || now - progress > kHangsAfterMs || now - begin > patience_ms) {
      return state.answered.load(std::memory_order_acquire) == asked;
    }
    wake_cupti_thread();  // again and again: it may have looked just before it was asked
    wait_at(&state.answered, answered, 5);
  }
  return true;
}

}  // namespace warplens::agent
