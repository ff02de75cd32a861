/* Wrappers: locks and semaphores. A free lock is taken without a look at the clock: only waits are reported. */
#define _GNU_SOURCE
#include <errno.h>

#include "osrt.h"

OSRT_LOCKS(OS_WRAPPER)

/* Where these are wrong the C library says so before it looks whether the lock is free; then it is to be asked first, too. */
static int is_time(const struct timespec *until) {
  return until != NULL && until->tv_nsec >= 0 && until->tv_nsec < 1000000000;
}

static int is_clock(clockid_t clock) {
  return clock == CLOCK_MONOTONIC || clock == CLOCK_REALTIME;
}

#define IS_ON LIKELY((__atomic_load_n(&g_tap.on, __ATOMIC_RELAXED) & WARPLENS_TAP_OS_CALLS) != 0)

/* `lock` is taken by `attempt` where it can be. */
#define LOCK(name, attempt, type, parameters, arguments, lock, may_try) \
  WRAPPER int name parameters {                                         \
    if (IS_ON && LIKELY(g_next.attempt != NULL) && (may_try)) {         \
      int tried = g_next.attempt(lock);                                 \
      if (LIKELY(tried != EBUSY)) return tried;                         \
    }                                                                   \
    OS_CALL(int, name, arguments, NUMBER)                               \
    OS_TELL(name, CALL, NUMBER, OSRT_OBJECT(lock))                      \
    return result;                                                      \
  }

/* In glibc's mutexes, which programs initialize statically: it is shared with other processes. */
enum { SHARED_BIT = 128 };

WRAPPER int pthread_mutex_lock(pthread_mutex_t *mutex) {
  OS_REAL(real, pthread_mutex_lock, NUMBER)
  /* Of one thread, a mutex is free; and the C library takes it without atomic instructions. */
  if (!IS_ON || (!os_many_threads && (mutex->__data.__kind & SHARED_BIT) == 0)) {
    return real(mutex);
  }
  if (LIKELY(g_next.pthread_mutex_trylock != NULL)) {
    int tried = g_next.pthread_mutex_trylock(mutex);
    if (LIKELY(tried != EBUSY)) return tried;
  }
  OS_CALL(int, pthread_mutex_lock, (mutex), NUMBER)
  OS_TELL(pthread_mutex_lock, CALL, NUMBER, OSRT_OBJECT(mutex))
  return result;
}

LOCK(pthread_mutex_timedlock, pthread_mutex_trylock, pthread_mutex_t,
     (pthread_mutex_t * mutex, const struct timespec *until), (mutex, until), mutex, is_time(until))
LOCK(pthread_mutex_clocklock, pthread_mutex_trylock, pthread_mutex_t,
     (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until), (mutex, clock, until), mutex,
     is_time(until) && is_clock(clock))
LOCK(pthread_rwlock_rdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t, (pthread_rwlock_t * lock), (lock),
     lock, 1)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_trywrlock, pthread_rwlock_t, (pthread_rwlock_t * lock), (lock),
     lock, 1)
LOCK(pthread_rwlock_timedrdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t,
     (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), lock, is_time(until))
LOCK(pthread_rwlock_timedwrlock, pthread_rwlock_trywrlock, pthread_rwlock_t,
     (pthread_rwlock_t * lock, const struct timespec *until), (lock, until), lock, is_time(until))
LOCK(pthread_rwlock_clockrdlock, pthread_rwlock_tryrdlock, pthread_rwlock_t,
     (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until), lock,
     is_time(until) && is_clock(clock))
LOCK(pthread_rwlock_clockwrlock, pthread_rwlock_trywrlock, pthread_rwlock_t,
     (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until), (lock, clock, until), lock,
     is_time(until) && is_clock(clock))
LOCK(pthread_spin_lock, pthread_spin_trylock, pthread_spinlock_t, (pthread_spinlock_t * lock), (lock), lock,
     1)

/* Whether a thread of a Python without a GIL waits: its code calls, with a semaphore on the stack. */
static inline int is_park(const void *caller, const sem_t *semaphore) {
  enum { FRAMES = 4096 }; /* between us and the function that has the semaphore */
  if (LIKELY((__atomic_load_n(&g_tap.on, __ATOMIC_ACQUIRE) & WARPLENS_TAP_PARKS) == 0)) return 0;
  return (uintptr_t)caller - g_tap.parks_begin < g_tap.parks_end - g_tap.parks_begin &&
         (uintptr_t)semaphore - (uintptr_t)__builtin_frame_address(0) < FRAMES;
}

static void tell_park(const sem_t *semaphore, uint64_t since) {
  const int saved = errno;
  g_tap.parked(semaphore, os_time(since), os_time(os_counter()));
  errno = saved;
}

/* These say that they failed by errno, which is the program's where we only looked; and they end a thread that is cancelled, also
 * where they need not wait. */
#define SEMAPHORE(name, parameters, arguments, may_try)                                        \
  WRAPPER int name parameters {                                                                \
    if (IS_ON && LIKELY(g_next.sem_trywait != NULL) && (may_try)) {                            \
      int saved = errno;                                                                       \
      if (g_next.pthread_testcancel != NULL) g_next.pthread_testcancel();                      \
      if (LIKELY(g_next.sem_trywait(semaphore) == 0)) return 0;                                \
      errno = saved;                                                                           \
    }                                                                                          \
    const uint64_t since = is_park(__builtin_return_address(0), semaphore) ? os_counter() : 0; \
    OS_CALL(int, name, arguments, MINUS)                                                       \
    if (UNLIKELY(since != 0)) tell_park(semaphore, since);                                     \
    OS_TELL(name, CALL, MINUS, OSRT_OBJECT(semaphore))                                         \
    return result;                                                                             \
  }

SEMAPHORE(sem_wait, (sem_t * semaphore), (semaphore), 1)
SEMAPHORE(sem_timedwait, (sem_t * semaphore, const struct timespec *until), (semaphore, until),
          is_time(until))
SEMAPHORE(sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until),
          (semaphore, clock, until), is_time(until) && is_clock(clock))
