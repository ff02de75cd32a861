/* Derives the state of Python's GIL: taking it signals `gil_switch`, releasing it `gil_cond`. */
#define _GNU_SOURCE
#include "gil.h"

static int tell(const void *const *conditions, const void *condition, uint32_t what) {
  uint32_t count = __atomic_load_n(&g_tap.gils, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < count && i < WARPLENS_MOST_GILS; ++i) {
    if (conditions[i] == condition) {
      g_tap.gil(i, what);
      return 1;
    }
  }
  return 0;
}

int gil_signals(const void *condition) {
  return tell(g_tap.gil_switch, condition, WARPLENS_GIL_TAKEN) ||
         tell(g_tap.gil_cond, condition, WARPLENS_GIL_RELEASED);
}

int gil_waits(const void *condition) {
  return tell(g_tap.gil_cond, condition, WARPLENS_GIL_WAITS);
}
