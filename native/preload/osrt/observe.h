/* Lets the stub's own wrappers report OS calls in the larger stub; nothing in the small one. */
#ifndef WARPLENS_PRELOAD_OBSERVE_H
#define WARPLENS_PRELOAD_OBSERVE_H

#ifdef WARPLENS_OSRT
#include <errno.h>

#include "osrt.h"

/* Around what is done, in one block; `its` result, and what more is known. */
#define OBSERVE const uint64_t start_ = os_begin();
#define OBSERVED(name, fails, its, ...)                   \
  {                                                       \
    const uint64_t end_ = start_ != 0 ? os_counter() : 0; \
    const int64_t its_ = (int64_t)(its);                  \
    {                                                     \
      const int64_t result = its_;                        \
      OS_TELL(name, CALL, fails, ##__VA_ARGS__)           \
    }                                                     \
  }
#else
#define OBSERVE
#define OBSERVED(...)
#endif

#endif
