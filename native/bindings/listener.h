// Finds out whether an NVTX tool listens.
// It asks lazily, and a "no" is never final.
#pragma once

#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdint>

namespace warplens::binding {

// -1: nobody has asked yet. 0: no tool. n > 0: a tool listens; n grows whenever a new one attaches, so whatever was
// made for an earlier one (handles, prepared attributes) is made again.
extern std::atomic<int32_t> g_listener;

// Lets NVTX look for a tool (once), and returns the new state.
int32_t ask_for_listener();

// The state, for the path of every event.
inline int32_t listener() {
  const int32_t state = g_listener.load(std::memory_order_acquire);
  if (state < 0) [[unlikely]] {
    return ask_for_listener();
  }
  return state;
}

// True when a tool listens. Does not settle the question where no tool is announced, and looks again when another
// tool has been announced (NVTX_INJECTION64_PATH) since the last look.
bool attached();

// Once, by the import.
bool init_listener();

// From now on no tool is looked for, and none is heard.
void mute();
bool is_muted();

// Called whenever a tool has attached, with the new state, before it is anybody's.
extern std::atomic<void (*)()> g_when_attached;

// Looks for a tool again after a look that found none. Returns the state. The door for a live attach.
int32_t look_again();

}  // namespace warplens::binding
