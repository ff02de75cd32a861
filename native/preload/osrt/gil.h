/* Python's global lock is a mutex and two conditions of the C library: its state follows from the threads that signal and wait for those. */
#ifndef WARPLENS_PRELOAD_GIL_H
#define WARPLENS_PRELOAD_GIL_H

#include "osrt.h"

/* Tells the agent where the condition is one of an interpreter's lock; 1 where it is. Keeps errno. */
int gil_signals(const void *condition);
int gil_waits(const void *condition);

static inline int gil_is_traced(void) {
  return UNLIKELY((__atomic_load_n(&g_tap.on, __ATOMIC_RELAXED) & WARPLENS_TAP_GIL) != 0);
}

#endif
