/* Between the larger stub, libwarpline_preload_cpu.so, whose functions stand before those of the C library, and the agent. C11. */
#ifndef WARPLINE_TAP_H
#define WARPLINE_TAP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* WarplineTap::on */
#define WARPLINE_TAP_OS_CALLS 1u
#define WARPLINE_TAP_FILES 2u /* calls on files, whatever they take */
#define WARPLINE_TAP_GIL 4u

/* WarplineOsCall::flags */
#define WARPLINE_OS_FILE 1u /* on a file, or what may be one; as kOsFile of cpu_records.h */

#define WARPLINE_OS_CLOSED 2u /* what `fd` was is gone */

/* A call of the C library that has returned. Texts are the caller's, and gone when it goes on. */
typedef struct WarplineOsCall {
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
  uint32_t flags; /* WARPLINE_OS_… */
  uint32_t reserved;
} WarplineOsCall;

enum { WARPLINE_MOST_GILS = 16 };

/* One per process, in the stub. The agent writes it; the wrappers read what they need, one load each, and do nothing where `on` is 0. */
typedef struct WarplineTap {
  uint64_t size;       /* of this structure; by the stub */
  uint32_t on;         /* WARPLINE_TAP_…; written last */
  uint32_t clock_kind; /* ClockKind: how wrappers read the time, as now_ns() of spool/clock.h */
  uint32_t clock_shift;
  uint32_t gils; /* how many there are; each has its number for ever */
  uint64_t clock_t0;
  uint64_t clock_base_ns;
  uint64_t clock_mult;
  /* In ticks of the clock: calls at least that long are told of, and those on files; 0 = all. */
  uint64_t call_ticks;
  uint64_t file_ticks;
  /* [MT] Called for those calls. Also from signal handlers. */
  void (*os_call)(const WarplineOsCall *call);
  /* [MT] A descriptor is of something else now, or of nothing: what was known of it is void. Also from signal handlers. */
  void (*descriptor)(int fd);
  /* [MT] The program is about to forbid itself system calls: all of the CPU side ends, our threads too; `why` is a literal. 0 where the
   * caller is a child of vfork, which speaks for itself only. */
  int (*sandboxed)(const char *why);
  /* The conditions of each interpreter's lock: `gil_cond` is signalled when it is let go, and waited for; `gil_switch` is signalled by
   * who has taken it. */
  const void *gil_cond[WARPLINE_MOST_GILS];
  const void *gil_switch[WARPLINE_MOST_GILS];
  /* [MT] `what`: WARPLINE_GIL_… below. Called by the thread it is about, as it happens. Keeps errno. */
  void (*gil)(uint32_t interpreter, uint32_t what);
} WarplineTap;

enum { WARPLINE_GIL_WAITS = 1, WARPLINE_GIL_TAKEN = 2, WARPLINE_GIL_RELEASED = 3 };

/* In the agent, called by the stub once in each program, before main: begins to record the CPU side, as the control file says. */
void warpline_tap(WarplineTap *tap);

#ifdef __cplusplus
}
#endif
#endif
