/* The interface between the stub's `_exit`, called before that of the C library, and the agent. */
#ifndef WARPLENS_LEAVE_H
#define WARPLENS_LEAVE_H

#include <stdint.h>

/* The symbol of the stub. */
#define WARPLENS_LEAVE "warplens_leave"

/* What to call when a process ends without its exit handlers: children of multiprocessing's fork end so. The agent writes it. */
typedef struct WarplensLeave {
  void (*call)(void);
  int32_t
      pid; /* of the process that `call` is for, written last; a child has its parent's until its own agent writes it */
} WarplensLeave;

#endif
