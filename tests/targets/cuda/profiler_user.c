/* Starts and stops a profiler: profiler_user [LIBRARY…], each with a function `work` that does it; without any, it does so itself.
 * It looks first whether there is one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

__attribute__((weak)) int cudaProfilerStart(void);
__attribute__((weak)) int cudaProfilerStop(void);
__attribute__((weak)) void program_says(const char *what);
int work(void);

int work(void) {
  if (cudaProfilerStart == NULL) {
    puts("no profiler");
    return 0;
  }
  int started = cudaProfilerStart();
  if (program_says != NULL) program_says("between");
  int stopped = cudaProfilerStop();
  if (program_says != NULL) program_says("after");
  printf("%d %d\n", started, stopped);
  return 0;
}

int main(int count, char **libraries) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 1; i < count; ++i) {
    void *library = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
    int (*its)(void) = (int (*)(void))(library != NULL ? dlsym(library, "work") : NULL);
    if (its == NULL) {
      puts(dlerror());
      return 1;
    }
    its();
  }
  return count > 1 ? 0 : work();
}
