// Intel's tracing interface (ITT), declared by us: the part that libraries link statically asks the library that INTEL_LIBITTNOTIFY64
// names to fill its table of functions.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace warplens {

// An entry of the table; a null name ends it.
struct IttFunction {
  const char *name;
  void **function;
  void *initial;
  void *nothing;
  int groups;
};

// The state of one copy of the static part.
struct IttState {
  unsigned char magic[8];
  unsigned long version[3];
  volatile long initialized[3];
  pthread_mutex_t mutex;
  void *library;
  void *error_handler;
  const char **library_name;
  IttFunction *functions;
};

// Callers look at `flags` before each call: 0 = nobody listens.
struct IttDomain {
  volatile int flags;
  const char *name;
  const void *wide_name;
  int number;  // 0 first; the collector's own, as `more`
  void *more;
  IttDomain *next;
};

// Passed by value, in memory.
struct IttId {
  unsigned long long parts[3];
};

// Programs only hand it back. Those that were made before a collector came are the static part's.
struct IttString {
  const char *text;
  const void *wide_text;
  int number;
  void *more;
  IttString *next;
};

}  // namespace warplens
