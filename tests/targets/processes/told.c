/* Prints what it was told by its environment, says something on stderr, and ends with 7. For any C library, linked in any way. */
#include <stdio.h>
#include <stdlib.h>

static void say(const char *name) {
  const char *value = getenv(name);
  printf("%s=%s\n", name, value != NULL ? value : "(none)");
}

int main(void) {
  say("LD_PRELOAD");
  say("NVTX_INJECTION64_PATH");
  say("CUDA_INJECTION64_PATH");
  say("WARPLENS_SPOOL");
  fprintf(stderr, "on stderr\n");
  return 7;
}
