/* Loads the agent and gives it the tap.
 * The larger stub does so in every program, the small one only in programs that contain CPython. */
#define _GNU_SOURCE
#include "tap.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>

WarplensTap g_tap = {.size = sizeof(WarplensTap)};

void tap_stop(const char *why) {
  int saved = errno;
  if (g_tap.sandboxed != NULL && g_tap.sandboxed(why)) {
    __atomic_store_n(&g_tap.on, 0, __ATOMIC_RELAXED);
  }
  errno = saved;
}

void give_tap(void) {
  void *(*find)(void *, const char *) = (void *(*)(void *, const char *))next_function("dlsym", NULL);
#ifndef WARPLENS_OSRT
  /* A Python that a program loads later is not seen here. */
  if (find == NULL || find(RTLD_DEFAULT, "_PyRuntime") == NULL) {
    return;
  }
#endif
  char beside[PATH_MAX];
  const char *path = find_agent(beside, sizeof(beside));
  void *(*load)(const char *, int) = (void *(*)(const char *, int))next_function("dlopen", NULL);
  void *agent = load != NULL && path != NULL ? load(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  void (*take)(WarplensTap *) =
      agent != NULL && find != NULL ? (void (*)(WarplensTap *))find(agent, "warplens_tap") : NULL;
  if (take != NULL) {
    take(&g_tap);
  }
}
