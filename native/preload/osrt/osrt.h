/* Times a call of the C library and reports it.
 * A short call costs two reads of the clock. A wrapper holds nothing during the call, so threads
 * may be cancelled, jump and unwind through it. */
#ifndef WARPLENS_PRELOAD_OSRT_H
#define WARPLENS_PRELOAD_OSRT_H

#include <time.h>

#include "tap.h"

/* A call's specific fields stand behind the fields that all calls have. */
#pragma GCC diagnostic ignored "-Woverride-init"

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ClockKind of format.h. */
enum { CLOCK_IS_MONOTONIC, CLOCK_IS_TSC, CLOCK_IS_CNTVCT };

/* In ticks of the agent's clock; never 0. */
static inline uint64_t os_counter(void) {
#if defined __x86_64__
  if (LIKELY(g_tap.clock_kind == CLOCK_IS_TSC)) {
    return __builtin_ia32_rdtsc();
  }
#elif defined __aarch64__
  if (LIKELY(g_tap.clock_kind == CLOCK_IS_CNTVCT)) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
  }
#endif
  return clock_now();
}

/* 0 where nothing is recorded: then nobody asks for the time again. */
static inline uint64_t os_begin(void) {
  return LIKELY((__atomic_load_n(&g_tap.on, __ATOMIC_RELAXED) & WARPLENS_TAP_OS_CALLS) != 0) ? os_counter()
                                                                                             : 0;
}

uint64_t os_time(uint64_t counter);

/* The process has begun a thread. */
extern char os_many_threads;

/* From here on the stub reports nothing, and nothing of the CPU side is recorded. */

/* Tells the agent of a call; start and end are counters yet. Keeps errno. */
void os_tell(WarplensOsCall *call);

/* The function was not there when the others were found: looks again, for libraries that came later; else one that fails. */
typedef void (*OsFunction)(void);
OsFunction os_late(void *slot, const char *name, OsFunction lacking);
extern const OsFunction os_lacks_minus;  /* -1 and ENOSYS */
extern const OsFunction os_lacks_number; /* ENOSYS */
extern const OsFunction os_lacks_null;   /* NULL and ENOSYS */

/* A descriptor is of something else now: what was known of it is void. */
static inline void os_forget(int fd) {
  if (fd >= 0 && g_tap.descriptor != NULL) {
    g_tap.descriptor(fd);
  }
}

void os_forget_from(unsigned first, unsigned last);

static inline void os_forget_pair(int error, const int ends[2]) {
  if (error == 0) {
    os_forget(ends[0]);
    os_forget(ends[1]);
  }
}

/* How a call says that it failed: -1 and errno; by the number of the error; NULL and errno; never. */
#define ERROR_MINUS(result) ((int64_t)(result) == -1 ? errno : 0)
#define ERROR_NUMBER(result) ((int32_t)(result))
#define ERROR_POINTER(result) ((result) == 0 ? errno : 0)
#define ERROR_NEVER(result) 0
#define LACKS_MINUS os_lacks_minus
#define LACKS_NUMBER os_lacks_number
#define LACKS_POINTER os_lacks_null
#define LACKS_NEVER os_lacks_minus

/* Which calls are reported: those on files always, if requested. */
#define LIMIT_FILE g_tap.file_ticks
#define LIMIT_CALL g_tap.call_ticks
#define FLAGS_FILE WARPLENS_OS_FILE
#define FLAGS_CALL 0

#define OS_REAL(real, name, fails)                                        \
  __typeof__(g_next.name) real = g_next.name;                             \
  if (UNLIKELY(real == NULL)) {                                           \
    real = (__typeof__(real))os_late(&g_next.name, #name, LACKS_##fails); \
  }

/* Declares `result`, and calls. */
#define OS_CALL(type, name, arguments, fails) \
  OS_REAL(real_, name, fails)                 \
  const uint64_t start_ = os_begin();         \
  type result = (real_)arguments;             \
  const uint64_t end_ = start_ != 0 ? os_counter() : 0;

/* Behind the name: what is known of the call, as members of WarplensOsCall. */
#define OS_TELL(called, group, fails, ...)                                                                                                                           \
  if (UNLIKELY(end_ - start_ >= LIMIT_##group) && start_ != 0) {                                                                                                     \
    os_tell(&(WarplensOsCall){                                                                                                                                       \
        .fd = -1, .error = ERROR_##fails(result), .flags = FLAGS_##group, .name = #called, .start = start_, .end = end_, .result = (int64_t)result, ##__VA_ARGS__}); \
  }

/* A wrapper without special cases, from its row of osrt_table.h. */
#define OS_WRAPPER(type, name, parameters, arguments, group, fails, ...) \
  WRAPPER type(name) parameters {                                        \
    OS_CALL(type, name, arguments, fails)                                \
    OS_TELL(name, group, fails, __VA_ARGS__)                             \
    return result;                                                       \
  }

#endif
