/* Shared by the wrappers of OS calls: they report a call, and replace a missing function. */
#define _GNU_SOURCE
#include "osrt.h"

#include <errno.h>
#include <sys/uio.h>

uint64_t os_time(uint64_t counter) {
  return g_tap.clock_base_ns +
         (uint64_t)((unsigned __int128)(counter - g_tap.clock_t0) * g_tap.clock_mult >> g_tap.clock_shift);
}

__attribute__((cold)) void os_tell(WarplensOsCall *call) {
  int saved = errno;
  call->start = os_time(call->start);
  call->end = os_time(call->end);
  if (call->error == EFAULT) {
    call->text = NULL;
    call->peer = NULL;
  }
  g_tap.os_call(call);
  errno = saved;
}

__attribute__((cold)) OsFunction os_late(void *slot, const char *name, OsFunction lacking) {
  void *found = NULL;
  next(); /* it has the slot, if this is the first call of all */
  __builtin_memcpy(&found, slot, sizeof(found));
  if (found == NULL) {
    found = next_function(name, NULL);
    if (found != NULL) {
      __atomic_store_n((void **)slot, found, __ATOMIC_RELEASE);
    }
  }
  return found != NULL ? (OsFunction)found : lacking;
}

/* Called in place of any function, with its arguments. */
static long lacks(long result) {
  errno = ENOSYS;
  return result;
}

static long lacks_minus(void) {
  return lacks(-1);
}

static long lacks_number(void) {
  return lacks(ENOSYS);
}

static long lacks_null(void) {
  return lacks(0);
}

const OsFunction os_lacks_minus = (OsFunction)lacks_minus;
const OsFunction os_lacks_number = (OsFunction)lacks_number;
const OsFunction os_lacks_null = (OsFunction)lacks_null;

void os_forget_from(unsigned first, unsigned last) {
  const unsigned most = 4096; /* as many as the agent remembers */
  for (unsigned fd = first; fd <= last && fd < most; ++fd) {
    os_forget((int)fd);
  }
}

uint64_t os_sum(const struct iovec *parts, int count, ssize_t result) {
  uint64_t sum = 0;
  for (int i = 0; result >= 0 && i < count; ++i) {
    sum += parts[i].iov_len;
  }
  return sum;
}
