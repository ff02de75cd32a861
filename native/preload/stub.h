/* The stub's parts: its state, its register, and the original functions behind its wrappers. */
#ifndef WARPLENS_PRELOAD_STUB_H
#define WARPLENS_PRELOAD_STUB_H

#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "warplens/registry.h"

#define AGENT "/libwarplens_agent.so"

#define WRAPPER __attribute__((visibility("default")))

/* What the program would call without us: X(result, name, parameters). The larger stub adds its own (osrt_table.h). */
#define WRAPPED_ALWAYS(X)                                                                                 \
  X(int, execve, (const char *, char *const *, char *const *))                                            \
  X(int, execvpe, (const char *, char *const *, char *const *))                                           \
  X(int, fexecve, (int, char *const *, char *const *))                                                    \
  X(int, execveat, (int, const char *, char *const *, char *const *, int))                                \
  X(int, posix_spawn,                                                                                     \
    (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, \
     char *const *))                                                                                      \
  X(int, posix_spawnp,                                                                                    \
    (pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, \
     char *const *))                                                                                      \
  X(pid_t, wait, (int *))                                                                                 \
  X(pid_t, waitpid, (pid_t, int *, int))                                                                  \
  X(pid_t, wait3, (int *, int, struct rusage *))                                                          \
  X(pid_t, wait4, (pid_t, int *, int, struct rusage *))                                                   \
  X(int, waitid, (idtype_t, id_t, siginfo_t *, int))                                                      \
  X(void, _exit, (int))                                                                                   \
  X(void, quick_exit, (int))                                                                              \
  X(int, prctl, (int, ...))                                                                               \
  X(int, system, (const char *))                                                                          \
  X(FILE *, popen, (const char *, const char *))

#ifdef WARPLENS_OSRT
#include "preload/osrt/table.h"
#define WRAPPED(X) WRAPPED_ALWAYS(X) OSRT(X)
#else
#define WRAPPED(X) WRAPPED_ALWAYS(X)
#endif

/* Null where nobody has the function. */
struct Next {
#define MEMBER(result, name, parameters, ...) result(*name) parameters;
  WRAPPED(MEMBER)
#undef MEMBER
};
extern struct Next g_next;

/* The functions behind ours. Usable at any time, also before our constructor. */
const struct Next *next(void);
/* A function that lies behind us, of the library that the code at `caller` (may be null) was linked with, or of any that is loaded,
 * also for one importer only; null where there is none. */
void *next_function(const char *name, const void *caller);
/* The path that we were loaded from. */
const char *own_path(void);

/* A variable that passes the agent's path to the loading process, and the one that holds the tool
 * whose place it took. */
struct Way {
  const char *agent_is;
  const char *tool_is;
};
enum { WAYS = 2, LONGEST_WAY = 22 };
extern const struct Way g_ways[WAYS];

enum { MOST_KEPT = 16, PRELOAD = 0 };

/* What the program forbids itself: nothing; soon, or in secret; or already. */
enum Sandbox { NO_SANDBOX, CLOSING, CLOSED };

/* Set once, by the constructor; afterwards only read, but for the sandbox. */
struct Stub {
  int ready;      /* what follows is known: else we only pass calls on */
  int registered; /* this process is in the register: else nothing is noted, and nothing put back */
  enum Sandbox sandbox;
  int32_t rank;
  int32_t local_rank;
  const char *log;             /* path of the register */
  const char *entry;           /* what stands for us in LD_PRELOAD */
  const char *agent;           /* path of the agent's library, or null */
  unsigned kept;               /* how many of these there are */
  const char *keep[MOST_KEPT]; /* NAME=value: our variables; [PRELOAD] is "LD_PRELOAD=" and our entry */
};
extern struct Stub g_stub;

/* The path of the agent, perhaps in `room`; null where that is too small. */
const char *find_agent(char *room, size_t size);

/* For on_exit. */
void at_exit(int status, void *nothing);

uint64_t clock_now(void);

/* Loads the agent, which begins to record the CPU side. The small stub does so only where the program holds CPython. */
void give_tap(void);

/* Appends a record; 0 where there is no register. `executable` and `arguments` may be null. Async-signal-safe, also in a child of vfork. */
int append(uint32_t kind, int32_t pid, int32_t ppid, int32_t status, uint64_t time_ns, const char *executable,
           char *const *arguments);
/* ... about the calling process, now. */
int append_own(uint32_t kind, int32_t status, const char *executable, char *const *arguments);

/* The calling process could not become a program that is not there; when it ends with a failure, that is noted. Safe where append is. */
void remember_failed(const char *path, char *const *arguments, int error);
void note_failed(void);

/* What is to become of the variables that a program gives to another. */
enum Wish {
  ADD_STUB = 1,   /* it is to load the stub */
  TAKE_STUB = 2,  /* it is not */
  PUT_BACK = 4,   /* our other variables, where they lack */
  TAKE_AGENT = 8, /* it is not to load the agent */
  TAKE_REST = 16  /* it is to know nothing of us */
};

struct Variables {
  char *const *given; /* may be null */
  unsigned wishes;    /* those that are not fulfilled already */
  size_t count;
  size_t preload; /* index of LD_PRELOAD, or SIZE_MAX */
  unsigned seen;  /* bit i: keep[i] is there, with whatever value */
  size_t room;    /* bytes that arrange() needs */
};

/* Whether the loader could find us from here. */
int can_be_loaded(void);
/* Looks at what is given. */
void survey(struct Variables *out, char *const *given, unsigned wishes);
/* The variables to give, where there are wishes. `room` is aligned for pointers. */
char *const *arrange(const struct Variables *in, void *room);

/* Whether we look after what it starts. */
static inline int is_active(void) {
  return g_stub.ready && __atomic_load_n(&g_stub.sandbox, __ATOMIC_RELAXED) != CLOSED;
}

/* Whether we note what becomes of it. */
static inline int is_open(void) {
  return g_stub.registered && __atomic_load_n(&g_stub.sandbox, __ATOMIC_RELAXED) == NO_SANDBOX;
}

#endif
