/* Wrappers: condition variables, also those of Python's global lock, which are no OS calls of the program's. */
#define _GNU_SOURCE
#include <errno.h>

#include "gil.h"
#include "osrt.h"

#define WAIT(name, parameters, arguments)               \
  WRAPPER int name parameters {                         \
    if (gil_is_traced() && gil_waits(condition)) {      \
      OS_REAL(real, name, NUMBER)                       \
      return real arguments;                            \
    }                                                   \
    OS_CALL(int, name, arguments, NUMBER)               \
    OS_TELL(name, CALL, NUMBER, OSRT_OBJECT(condition)) \
    return result;                                      \
  }

WAIT(pthread_cond_wait, (pthread_cond_t * condition, pthread_mutex_t *mutex), (condition, mutex))
WAIT(pthread_cond_timedwait,
     (pthread_cond_t * condition, pthread_mutex_t *mutex, const struct timespec *until),
     (condition, mutex, until))
WAIT(pthread_cond_clockwait,
     (pthread_cond_t * condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until),
     (condition, mutex, clock, until))

#define SIGNAL(name)                                    \
  WRAPPER int name(pthread_cond_t *condition) {         \
    if (gil_is_traced() && gil_signals(condition)) {    \
      OS_REAL(real, name, NUMBER)                       \
      return real(condition);                           \
    }                                                   \
    OS_CALL(int, name, (condition), NUMBER)             \
    OS_TELL(name, CALL, NUMBER, OSRT_OBJECT(condition)) \
    return result;                                      \
  }

SIGNAL(pthread_cond_signal)
SIGNAL(pthread_cond_broadcast)
