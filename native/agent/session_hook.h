// The table of hooks that the session calls when it starts, forks or ends, without including them.
#pragma once

#include <cstdint>

#include "spool/process_log.h"

namespace warplens::agent {

// One hook. Each function may be null.
struct SessionHook {
  //! [MT] warplens_start: a recording begins in a process that runs already. No lock is held.
  void (*attach)(ProcessLog &log) = nullptr;
  //! [MT] warplens_stop, before the file of that recording is finished. No lock is held.
  void (*detach)(uint32_t generation) = nullptr;
  //! [MT] A window has opened or closed.
  void (*windows_changed)() = nullptr;
  //! [FORK] In the child of a fork, where only the calling thread is left: no locks, no memory.
  void (*abandon)() = nullptr;
  //! [FORK] In the child, at the end of the handler.
  void (*begin_child)() = nullptr;
  //! The process ends in an orderly way; other threads may still run.
  void (*end)() = nullptr;
};

//! The hooks. Each is defined by its own file below hooks/.
extern const SessionHook kCuptiHook;
extern const SessionHook kCpuHook;

//! Calls one function of every hook, in this order: `for_each_hook<&SessionHook::end>()`.
template <auto function, typename... Arguments>
void for_each_hook(Arguments &&...arguments) {
  for (const SessionHook *hook : {&kCuptiHook, &kCpuHook}) {
    if (hook->*function != nullptr) {
      (hook->*function)(arguments...);
    }
  }
}

}  // namespace warplens::agent
