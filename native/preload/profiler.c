/* Wraps cudaProfilerStart and cudaProfilerStop.
 * The program marks with them when to record. Calls through a pointer from dlsym, and those of a
 * statically linked runtime, do not pass here. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>

#include "stub.h"
#include "system.h"

/* Programs that merely look whether the name is there find ours; this is what they get then. The number is the same in both. */
enum { SYMBOL_NOT_FOUND = 302 };

typedef int Function(void);

WRAPPER Function cudaProfilerStart, cudaProfilerStop, cuProfilerStart, cuProfilerStop;

/* Where the path of the stub cannot stand in LD_PRELOAD, a link does: the agent is beside what it leads to. */
const char *find_agent(char *room, size_t size) {
  if (g_stub.agent != NULL) {
    return g_stub.agent;
  }
  const char *stub = g_stub.entry;
  long got = system_call(SYS_readlinkat, AT_FDCWD, (long)stub, (long)room, (long)size - 1);
  if (got > 0 && room[0] == '/') {
    room[got] = '\0';
    stub = room;
  }
  size_t folder = (size_t)(strrchr(stub, '/') - stub);
  if (folder + sizeof(AGENT) > size) {
    return NULL;
  }
  memmove(room, stub, folder);
  memcpy(room + folder, AGENT, sizeof(AGENT));
  return room;
}

/* Loads the agent where NVTX has not. dlopen and dlsym are called by address: before glibc 2.34 they lived in another library. */
static void tell_agent(const char *name) {
  if (!g_stub.registered || !is_active()) {
    return;
  }
  int saved = errno;
  Function *function = (Function *)next_function(name, NULL);
  if (function == NULL) {
    void *(*load)(const char *, int) = (void *(*)(const char *, int))next_function("dlopen", NULL);
    char beside[PATH_MAX];
    const char *agent = find_agent(beside, sizeof(beside));
    if (load != NULL && agent != NULL) {
      load(agent, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
      function = (Function *)next_function(name, NULL);
    }
  }
  if (function != NULL) {
    function();
  }
  errno = saved;
}

static int pass_on(const char *name, const void *caller) {
  Function *function = (Function *)next_function(name, caller);
  return function != NULL ? function() : SYMBOL_NOT_FOUND;
}

static int start(const char *name, const void *caller) {
  int result = pass_on(name, caller);
  tell_agent("warplens_profiler_start");
  return result;
}

static int stop(const char *name, const void *caller) {
  tell_agent("warplens_profiler_stop");
  return pass_on(name, caller);
}

int cudaProfilerStart(void) {
  return start("cudaProfilerStart", __builtin_return_address(0));
}

int cudaProfilerStop(void) {
  return stop("cudaProfilerStop", __builtin_return_address(0));
}

int cuProfilerStart(void) {
  return start("cuProfilerStart", __builtin_return_address(0));
}

int cuProfilerStop(void) {
  return stop("cuProfilerStop", __builtin_return_address(0));
}
