/* Looks like CUDA's runtime to those that start and stop a profiler: prints whether a window is open while it is called. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef WHICH
#define WHICH "runtime"
#endif

static void say(const char *what) {
  uint32_t gate = 0;
  int file = open(getenv("CONTROL"), O_RDONLY | O_CLOEXEC);
  if (pread(file, &gate, sizeof(gate), atoi(getenv("GATE"))) != sizeof(gate)) perror("control");
  close(file);
  printf("%s %s %u\n", WHICH, what, gate & 1);
}

int cudaProfilerStart(void) {
  say("start");
  return 41;
}

int cudaProfilerStop(void) {
  say("stop");
  return 42;
}

int cuProfilerStart(void) {
  return 43;
}

int cuProfilerStop(void) {
  return 44;
}

void program_says(const char *what);
void program_says(const char *what) {
  say(what);
}
