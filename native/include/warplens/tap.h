/* The interface between the larger stub (libwarplens_preload_cpu.so) and the agent. C11. */
#ifndef WARPLENS_TAP_H
#define WARPLENS_TAP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* WarplensTap::on */
#define WARPLENS_TAP_OS_CALLS 1u
#define WARPLENS_TAP_FILES 2u /* calls on files, whatever they take */
#define WARPLENS_TAP_GIL 4u
#define WARPLENS_TAP_PARKS 8u /* waits of a Python without a GIL */

/* WarplensOsCall::flags */
#define WARPLENS_OS_FILE 1u /* on a file, or what may be one; as kOsFile of cpu_records.h */

#define WARPLENS_OS_CLOSED 2u /* what `fd` was is gone */

/* A call of the C library that has returned. Texts are the caller's, and gone when it goes on. */
typedef struct WarplensOsCall {
  const char *name; /* of the function; a literal */
  uint64_t start;
  uint64_t end;
  int64_t result;
  uint64_t object;  /* bytes that were asked for; address of the mutex, condition, …; flags of open */
  const char *text; /* path, program, …; null: none, or that of the descriptor */
  const void *peer; /* of connect: struct sockaddr, or null */
  uint32_t peer_size;
  int32_t fd;     /* -1 = none */
  int32_t error;  /* 0 = it succeeded */
  uint32_t flags; /* WARPLENS_OS_… */
  uint32_t reserved;
} WarplensOsCall;

enum { WARPLENS_MOST_GILS = 16 };

/* One per process, in the stub. The agent writes it; the wrappers read what they need, one load each, and do nothing where `on` is 0. */
typedef struct WarplensTap {
  uint64_t size;       /* of this structure; by the stub */
  uint32_t on;         /* WARPLENS_TAP_…; written last */
  uint32_t clock_kind; /* ClockKind: how wrappers read the time, as now_ns() of spool/clock.h */
  uint32_t clock_shift;
  uint32_t gils; /* how many there are; each has its number for ever */
  uint64_t clock_t0;
  uint64_t clock_base_ns;
  uint64_t clock_mult;
  /* In ticks of the clock: calls at least that long are reported, and those on files; 0 = all. */
  uint64_t call_ticks;
  uint64_t file_ticks;
  /* [MT] Called for those calls. Also from signal handlers. */
  void (*os_call)(const WarplensOsCall *call);
  /* [MT] A descriptor is of something else now, or of nothing: what was known of it is void. Also from signal handlers. */
  void (*descriptor)(int fd);
  /* [MT] The program is about to forbid itself system calls: all of the CPU side ends, our threads too; `why` is a literal. 0 where the
   * caller is a child of vfork, which speaks for itself only. */
  int (*sandboxed)(const char *why);
  /* The conditions of each interpreter's lock: `gil_cond` is signalled when it is let go, and waited for; `gil_switch` is signalled by the
   * thread that has taken it. */
  const void *gil_cond[WARPLENS_MOST_GILS];
  const void *gil_switch[WARPLENS_MOST_GILS];
  /* [MT] `what`: WARPLENS_GIL_… below. Called by the thread it is about, as it happens. Keeps errno. */
  void (*gil)(uint32_t interpreter, uint32_t what);
  /* Where the code of a Python without a GIL lies. A thread of it that has to wait, for a lock or for another one to let it go on, waits
   * for a semaphore that is on its own stack. */
  uint64_t parks_begin;
  uint64_t parks_end;
  /* [MT] Called by the thread that waited, while the semaphore is still there. Keeps errno. */
  void (*parked)(const void *semaphore, uint64_t start, uint64_t end);
} WarplensTap;

enum { WARPLENS_GIL_WAITS = 1, WARPLENS_GIL_TAKEN = 2, WARPLENS_GIL_RELEASED = 3 };

/* In the agent, called by the stub once in each program, before main: begins to record the CPU side, as the control file says. */
void warplens_tap(WarplensTap *tap);

#ifdef __cplusplus
}
#endif
#endif
