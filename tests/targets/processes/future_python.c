/* A program that looks like a CPython whose version is given when it is compiled: what a version that nobody knows yet does to us. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#ifndef COOKIE
#define COOKIE "xdebugpy"
#endif

const unsigned long Py_Version = VERSION;
struct {
  char cookie[8];
  unsigned long version, free_threaded, offsets[512];
} _PyRuntime = {COOKIE, VERSION, 0, {0}};
char PyCode_Type[512], PyUnicode_Type[512], PyBytes_Type[512];

int main(void) {
  struct timespec begin, now;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((now.tv_sec - begin.tv_sec) * 1000000000L + now.tv_nsec - begin.tv_nsec < 200000000L);
  puts("done");
  return 0;
}
