// Switches kinds of records with the windows.
// Outside of windows such kinds cost nothing. The thread that moves the gate in this process
// switches them before it continues; the agent's thread sees gates that other processes move.
#include "kinds.h"
#include "state.h"

namespace warplens::agent {
namespace {

constexpr unsigned kPatienceMs = 50;

bool is_window_open(const CuptiState &state) {
  return state.control == nullptr || state.control->gate.load(std::memory_order_acquire) % 2 != 0;
}

// CUPTI 13.0 gives the launches of graphs wrong numbers once its kinds were off.
bool may_switch_off(const CuptiState &state) {
  bool once = state.control->trigger != Trigger::none && state.control->window_limit == 1;
  return once || state.cupti.version >= kCupti131u1;
}

}  // namespace

bool are_kinds_wanted() {
  const CuptiState &state = g_cupti;
  return (state.settings.flags & kCudaToggle) == 0 || state.stays_on || is_window_open(state);
}

void begin_following_windows() {
  CuptiState &state = g_cupti;
  state.stays_on = false;
  bool toggles = (state.settings.flags & kCudaToggle) != 0 && state.control != nullptr;
  state.follows.store(toggles, std::memory_order_release);
  if (!toggles &&
      (!is_window_open(state) || (state.control != nullptr && state.control->trigger != Trigger::none))) {
    cupti_notice(CudaNotice::gated, state.cupti.version, "");
  }
}

void follow_windows() {
  CuptiState &state = g_cupti;
  if (!state.follows.load(std::memory_order_acquire) || !is_cupti_usable() ||
      state.log.load(std::memory_order_relaxed) == nullptr) {
    return;
  }
  // Another thread switches just now, perhaps for an older gate: the agent's thread looks again.
  if (!state.switching.take(kPatienceMs)) {
    wake_cupti_thread();
    return;
  }
  if (state.kinds_on && !is_window_open(state) && !state.stays_on && !may_switch_off(state)) {
    state.stays_on = true;
    cupti_notice(CudaNotice::gated, state.cupti.version, "");
  }
  bool wanted = are_kinds_wanted();
  if (wanted != state.kinds_on && is_cupti_usable()) {
    if (wanted) {
      state.canary_is_on = switch_kinds_on(state.cupti, state.settings, cupti_notice);
    } else {
      state.canary_is_on = false;
      switch_kinds_off(state.cupti, state.settings);
      state.um_is_on = false;
    }
    state.kinds_on = wanted;
  }
  state.switching.give();
}

}  // namespace warplens::agent
