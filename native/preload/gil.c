/* Of the larger stub: Python's interpreters take and let go of their lock with these functions of the C library, so who looks at them
 * knows who holds it. */
#define _GNU_SOURCE
#include "gil.h"

#include <pthread.h>

typedef int (*Signal)(pthread_cond_t *);
typedef int (*TimedWait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static Signal g_signal;
static TimedWait g_timed_wait;

/* Also before our constructor. Of two versions of a function it is the one that programs are linked with now. */
static void *find(void **slot, const char *name) {
  void *real = __atomic_load_n(slot, __ATOMIC_RELAXED);
  if (__builtin_expect(real == NULL, 0)) {
    real = next_function(name, NULL);
    __atomic_store_n(slot, real, __ATOMIC_RELAXED);
  }
  return real;
}

WRAPPER int pthread_cond_signal(pthread_cond_t *cond) {
  Signal real = (Signal)find((void **)&g_signal, "pthread_cond_signal");
  if ((__atomic_load_n(&g_tap.on, __ATOMIC_ACQUIRE) & WARPLINE_TAP_GIL) != 0) {
    uint32_t count = __atomic_load_n(&g_tap.gils, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count; ++i) {
      if (g_tap.gil_cond[i] == cond) {
        g_tap.gil(i, WARPLINE_GIL_RELEASED);
        break;
      }
      if (g_tap.gil_switch[i] == cond) {
        g_tap.gil(i, WARPLINE_GIL_TAKEN);
        break;
      }
    }
  }
  return real(cond);
}

WRAPPER int pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                   const struct timespec *until) {
  TimedWait real = (TimedWait)find((void **)&g_timed_wait, "pthread_cond_timedwait");
  gil_waits(cond);
  return real(cond, mutex, until);
}
