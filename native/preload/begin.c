/* The stub in every process of the tree: an entry in the register when it starts, forks, becomes another program, ends, or
 * collects a child; and our variables, kept alive. Nothing else: no thread, no open file, no memory from the heap. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stub.h"
#include "system.h"

#define SPOOL_IS "WARPLENS_SPOOL="
#define PYTHON_IS "WARPLENS_PYTHON=" /* what is recorded of Python, and by our threads in its processes */

struct Stub g_stub = {.rank = -1, .local_rank = -1};
static char g_texts[2048]; /* longer ones get separate pages */

/* In glibc of any age; pthread_atfork is not. */
int __register_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void), void *library);

static const char *value_of(char **variables, const char *name_is) {
  size_t length = strlen(name_is);
  for (; *variables != NULL; ++variables) {
    if (strncmp(*variables, name_is, length) == 0) {
      return *variables + length;
    }
  }
  return NULL;
}

static int32_t number(const char *text) {
  long value = 0;
  const char *at = text;
  for (; at != NULL && *at >= '0' && *at <= '9' && value <= INT_MAX; ++at) {
    value = value * 10 + (*at - '0');
  }
  return at == NULL || at == text || *at != '\0' || value > INT_MAX ? -1 : (int32_t)value;
}

/* As the agent does (native/agent/facts.cpp): torchelastic sets RANK under Slurm too, where SLURM_PROCID is only the node's. */
static void find_rank(char **variables) {
  static const char global[][24] = {
      "OMPI_COMM_WORLD_RANK=", "PMIX_RANK=", "PMI_RANK=", "SLURM_PROCID=", "RANK="};
  static const char local[][28] = {
      "OMPI_COMM_WORLD_LOCAL_RANK=", "MPI_LOCALRANKID=", "SLURM_LOCALID=", "LOCAL_RANK="};
  int32_t rank = number(value_of(variables, "RANK="));
  int32_t local_rank = number(value_of(variables, "LOCAL_RANK="));
  if (rank < 0 || local_rank < 0) {
    rank = local_rank = -1;
    for (unsigned i = 0; i < sizeof(global) / sizeof(global[0]) && rank < 0; ++i) {
      rank = number(value_of(variables, global[i]));
    }
    for (unsigned i = 0; i < sizeof(local) / sizeof(local[0]) && local_rank < 0; ++i) {
      local_rank = number(value_of(variables, local[i]));
    }
  }
  g_stub.rank = rank;
  g_stub.local_rank = local_rank;
}

/* The agent's path, where the variable makes somebody load it; else null. */
static const char *agent_in(const char *variable) {
  for (unsigned i = 0; i < WAYS; ++i) {
    size_t length = strlen(g_ways[i].agent_is);
    const char *name = strrchr(variable, '/');
    if (strncmp(variable, g_ways[i].agent_is, length) == 0 && name != NULL && strcmp(name, AGENT) == 0) {
      return variable + length;
    }
  }
  return NULL;
}

static int is_kept(const char *variable) {
  return strncmp(variable, "WARPLENS_", 9) == 0 || agent_in(variable) != NULL;
}

/* Programs write over the variables that they were started with, to rename themselves. */
static int remember(char **variables, const char *spool, const char *entry) {
  size_t need = strlen(spool) + sizeof("/" WARPLENS_REGISTRY) + strlen(entry) + sizeof("LD_PRELOAD=");
  for (char **at = variables; *at != NULL; ++at) {
    need += is_kept(*at) ? strlen(*at) + 1 : 0;
  }
  char *text = g_texts;
  if (need > sizeof(g_texts)) {
    text = mmap(NULL, need, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (text == MAP_FAILED) {
      return 0;
    }
  }
  g_stub.log = text;
  text = stpcpy(stpcpy(text, spool), "/" WARPLENS_REGISTRY) + 1;
  g_stub.keep[PRELOAD] = text;
  g_stub.entry = text + sizeof("LD_PRELOAD=") - 1;
  text = stpcpy(stpcpy(text, "LD_PRELOAD="), entry) + 1;
  g_stub.kept = 1;
  for (; *variables != NULL && g_stub.kept < MOST_KEPT; ++variables) {
    if (is_kept(*variables)) {
      g_stub.keep[g_stub.kept++] = text;
      if (agent_in(*variables) != NULL) {
        g_stub.agent = text + (agent_in(*variables) - *variables);
      }
      text = stpcpy(text, *variables) + 1;
    }
  }
  return 1;
}

/* The kernel tells what it was asked to run, at no cost; /proc takes as long as all the rest, but knows the interpreter of a script,
 * and the full path. */
static const char *find_executable(int count, char **arguments, char *room, size_t size) {
  const char *asked = (const char *)getauxval(AT_EXECFN);
  int is_script = asked == NULL || asked[0] != '/' || strncmp(asked, "/dev/fd/", 8) == 0;
  for (int i = 1; !is_script && i < count && i <= 2; ++i) {
    is_script = strcmp(arguments[i], asked) == 0;
  }
  if (!is_script) {
    return asked;
  }
  long got = system_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)room, (long)size - 1);
  room[got > 0 ? got : 0] = '\0';
  return got > 0 || asked == NULL ? room : asked;
}

/* The process that last did: in a child, its parent, which may be gone before the child looks. */
static int g_forking;

static void before_fork(void) {
  __atomic_store_n(&g_forking, (int)system_call(SYS_getpid, 0, 0, 0, 0), __ATOMIC_RELAXED);
}

static void in_child(void) {
  if (is_open()) {
    append(WARPLENS_PROCESS_FORK, (int32_t)system_call(SYS_getpid, 0, 0, 0, 0), g_forking, 0, clock_now(),
           NULL, NULL);
  }
}

/* Without a recording, or with one that is over or out of reach, we are still in LD_PRELOAD: then programs that are started are
 * kept from harm, and no more. */
__attribute__((constructor)) static void begin(int count, char **arguments, char **variables) {
  const char *entry = own_path();
  if (variables == NULL || getauxval(AT_SECURE) != 0 || entry == NULL || entry[0] != '/') {
    return;
  }
  const char *spool = value_of(variables, SPOOL_IS);
  const char *follow = value_of(variables, "WARPLENS_FOLLOW=");
  if (!remember(variables, spool != NULL ? spool : "", entry)) {
    return;
  }
  g_stub.ready = 1;
  if (spool == NULL || spool[0] != '/' || (follow != NULL && strcmp(follow, "0") == 0)) {
    return;
  }
  find_rank(variables);
  char executable[4096];
  const char *name = find_executable(count, arguments, executable, sizeof(executable));
  if (append_own(WARPLENS_PROCESS_PROGRAM, 0, name, arguments)) {
    g_stub.registered = 1;
    on_exit(at_exit, NULL);
    __register_atfork(before_fork, NULL, in_child, NULL);
#ifndef WARPLENS_OSRT
    if (value_of(variables, PYTHON_IS) == NULL) {
      return;
    }
#endif
    give_tap();
  }
}
