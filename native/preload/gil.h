/* What the wrappers of conditions tell of Python's locks. */
#ifndef WARPLINE_PRELOAD_GIL_H
#define WARPLINE_PRELOAD_GIL_H

#include "tap.h"

/* The number of the interpreter whose lock is let go with `cond`, or -1. */
static inline int gil_of(const void *cond) {
  if ((__atomic_load_n(&g_tap.on, __ATOMIC_ACQUIRE) & WARPLINE_TAP_GIL) != 0) {
    uint32_t count = __atomic_load_n(&g_tap.gils, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; ++i) {
      if (g_tap.gil_cond[i] == cond) {
        return (int)i;
      }
    }
  }
  return -1;
}

/* Before any wait for `cond`. */
static inline void gil_waits(const void *cond) {
  int interpreter = gil_of(cond);
  if (interpreter >= 0) {
    g_tap.gil((uint32_t)interpreter, WARPLINE_GIL_WAITS);
  }
}

#endif
