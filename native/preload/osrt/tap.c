/* Of the larger stub: loads the agent when the program begins, and hands it the tap that the wrappers look at. */
#define _GNU_SOURCE
#include "tap.h"

#include <dlfcn.h>
#include <limits.h>

WarplensTap g_tap = {.size = sizeof(WarplensTap)};

void give_tap(void) {
  char beside[PATH_MAX];
  const char *path = find_agent(beside, sizeof(beside));
  void *(*load)(const char *, int) = (void *(*)(const char *, int))next_function("dlopen", NULL);
  void *(*find)(void *, const char *) = (void *(*)(void *, const char *))next_function("dlsym", NULL);
  void *agent = load != NULL && path != NULL ? load(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) : NULL;
  void (*take)(WarplensTap *) =
      agent != NULL && find != NULL ? (void (*)(WarplensTap *))find(agent, "warplens_tap") : NULL;
  if (take != NULL) {
    take(&g_tap);
  }
}
