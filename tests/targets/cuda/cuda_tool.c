/* Another tool for the CUDA driver: writes down that it was started, and subscribes to CUPTI where TOOL_CUPTI names it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int InitializeInjection(void);

int InitializeInjection(void) {
  const char *cupti = getenv("TOOL_CUPTI");
  void *library = cupti != NULL ? dlopen(cupti, RTLD_NOW) : NULL;
  int (*subscribe)(void **, void *, void *) =
      (int (*)(void **, void *, void *))(library != NULL ? dlsym(library, "cuptiSubscribe") : NULL);
  static void *subscriber;
  FILE *log = fopen(getenv("TOOL_LOG"), "a");
  fprintf(log, "started %d\n", subscribe != NULL ? subscribe(&subscriber, NULL, NULL) : -1);
  fclose(log);
  return 1;
}
