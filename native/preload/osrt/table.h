/* The table of all functions that the larger stub wraps.
 * The stub's own wrappers come on top. Each function is named once, in the table of its group.
 * X(result, name, parameters, arguments, group, fails, facts about a call…): see OS_WRAPPER in
 * osrt.h. A function with the first three only is written by hand in the file of the group. */
#ifndef WARPLENS_PRELOAD_OSRT_TABLE_H
#define WARPLENS_PRELOAD_OSRT_TABLE_H

#include "files.h"
#include "locks.h"
#include "memory.h"
#include "paths.h"
#include "process.h"
#include "sockets.h"
#include "stdio.h"
#include "waits.h"

/* It never comes to rest here: */
/* clang-format off */
#define OSRT(X) \
  OSRT_FILES(X) \
  OSRT_FILES_BY_HAND(X) \
  OSRT_PATHS(X) \
  OSRT_PATHS_BY_HAND(X) \
  OSRT_STDIO(X) \
  OSRT_STDIO_BY_HAND(X) \
  OSRT_SOCKETS(X) \
  OSRT_SOCKETS_BY_HAND(X) \
  OSRT_WAITS(X) \
  OSRT_LOCKS(X) \
  OSRT_LOCKS_BY_HAND(X) \
  OSRT_PROCESS(X) \
  OSRT_PROCESS_BY_HAND(X) \
  OSRT_MEMORY(X) \
  OSRT_MEMORY_BY_HAND(X)
/* clang-format on */

#endif
