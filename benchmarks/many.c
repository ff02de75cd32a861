// many MODE COUNT: COUNT names, threads or processes, one after the other, or COUNT ranges of eight names.
// Prints one JSON object: ns on the wall, ns of CPU time (children's too), KiB by which this process became larger.
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t cpu(void) {
  int64_t all = 0;
  int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
  for (int i = 0; i < 2; ++i) {
    struct rusage used;
    getrusage(whose[i], &used);
    all += ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
           ((int64_t)used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
  }
  return all;
}

static long resident_kib(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1) {
    abort();
  }
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void *thread(void *nothing) {
  nvtxRangePushA("one");
  nvtxRangePop();
  return nothing;
}

static void one(const char *mode, int i) {
  if (strcmp(mode, "names") == 0) {
    char name[64];
    snprintf(name, sizeof(name), "request %d of a user", i);
    nvtxRangePushA(name);
    nvtxRangePop();
  } else if (strcmp(mode, "ranges") == 0) {
    static const char *const names[] = {"load", "parse", "check", "plan", "run", "wait", "copy", "store"};
    nvtxRangePushA(names[i & 7]);
    nvtxRangePop();
  } else if (strcmp(mode, "threads") == 0) {
    pthread_t id;
    if (pthread_create(&id, NULL, thread, NULL) != 0 || pthread_join(id, NULL) != 0) {
      abort();
    }
  } else {
    pid_t pid = 0;
    char *words[] = {"/bin/true", NULL};
    int status = 0;
    if (posix_spawn(&pid, words[0], NULL, NULL, words, environ) != 0 || waitpid(pid, &status, 0) != pid ||
        status != 0) {
      abort();
    }
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    return 2;
  }
  int count = atoi(argv[2]);
  thread(NULL);  // what loads the agent is not part of the loop
  long before = resident_kib();
  int64_t begin = now(), begin_cpu = cpu();
  for (int i = 0; i < count; ++i) {
    one(argv[1], i);
  }
  printf("{\"wall\": %lld, \"cpu\": %lld, \"kib\": %ld}\n", (long long)(now() - begin),
         (long long)(cpu() - begin_cpu), resident_kib() - before);
  return 0;
}
