/* Table: locks, conditions and semaphores. `object` is the address of the lock, condition or semaphore. */
#ifndef WARPLENS_PRELOAD_OSRT_LOCKS_H
#define WARPLENS_PRELOAD_OSRT_LOCKS_H

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#define OSRT_OBJECT(of) .object = (uint64_t)(uintptr_t)(of)

#define OSRT_LOCKS(X)                                                                                        \
  X(int, pthread_barrier_wait, (pthread_barrier_t * barrier), (barrier), CALL, NEVER, OSRT_OBJECT(barrier))  \
  X(int, pthread_join, (pthread_t thread, void **to), (thread, to), CALL, NUMBER, OSRT_OBJECT(thread))       \
  X(int, pthread_timedjoin_np, (pthread_t thread, void **to, const struct timespec *until),                  \
    (thread, to, until), CALL, NUMBER, OSRT_OBJECT(thread))                                                  \
  X(int, pthread_clockjoin_np, (pthread_t thread, void **to, clockid_t clock, const struct timespec *until), \
    (thread, to, clock, until), CALL, NUMBER, OSRT_OBJECT(thread))

#define OSRT_LOCKS_BY_HAND(X)                                                                               \
  X(int, pthread_mutex_lock, (pthread_mutex_t * mutex))                                                     \
  X(int, pthread_mutex_trylock, (pthread_mutex_t * mutex))                                                  \
  X(int, pthread_mutex_timedlock, (pthread_mutex_t * mutex, const struct timespec *until))                  \
  X(int, pthread_mutex_clocklock, (pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until)) \
  X(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock))                                                  \
  X(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock))                                                  \
  X(int, pthread_rwlock_tryrdlock, (pthread_rwlock_t * lock))                                               \
  X(int, pthread_rwlock_trywrlock, (pthread_rwlock_t * lock))                                               \
  X(int, pthread_rwlock_timedrdlock, (pthread_rwlock_t * lock, const struct timespec *until))               \
  X(int, pthread_rwlock_timedwrlock, (pthread_rwlock_t * lock, const struct timespec *until))               \
  X(int, pthread_rwlock_clockrdlock,                                                                        \
    (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until))                               \
  X(int, pthread_rwlock_clockwrlock,                                                                        \
    (pthread_rwlock_t * lock, clockid_t clock, const struct timespec *until))                               \
  X(int, pthread_spin_lock, (pthread_spinlock_t * lock))                                                    \
  X(int, pthread_spin_trylock, (pthread_spinlock_t * lock))                                                 \
  X(int, pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t * mutex))                          \
  X(int, pthread_cond_timedwait,                                                                            \
    (pthread_cond_t * condition, pthread_mutex_t * mutex, const struct timespec *until))                    \
  X(int, pthread_cond_clockwait,                                                                            \
    (pthread_cond_t * condition, pthread_mutex_t * mutex, clockid_t clock, const struct timespec *until))   \
  X(int, pthread_cond_signal, (pthread_cond_t * condition))                                                 \
  X(int, pthread_cond_broadcast, (pthread_cond_t * condition))                                              \
  X(void, pthread_testcancel, (void))                                                                       \
  X(int, sem_wait, (sem_t * semaphore))                                                                     \
  X(int, sem_trywait, (sem_t * semaphore))                                                                  \
  X(int, sem_timedwait, (sem_t * semaphore, const struct timespec *until))                                  \
  X(int, sem_clockwait, (sem_t * semaphore, clockid_t clock, const struct timespec *until))

#endif
