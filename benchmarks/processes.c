// processes MODE COUNT: ns of time and of CPU time (children's too) for each of COUNT processes or threads, one after the other.
// MODE: exec, fork, recorded-fork, threads (of one range each).
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

static void range(void) {
  nvtxRangePushA("one");
  nvtxRangePop();
}

static void *thread(void *nothing) {
  range();
  return nothing;
}

static void await(pid_t pid) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0) {
    abort();
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    return 2;
  }
  const char *mode = argv[1];
  int count = atoi(argv[2]);
  range();  // what loads the agent is not part of the loop
  int64_t begin = now(), begin_cpu = cpu();
  for (int i = 0; i < count; ++i) {
    pid_t pid = 0;
    if (strcmp(mode, "exec") == 0) {
      char *words[] = {"true", NULL};
      if (posix_spawn(&pid, "/bin/true", NULL, NULL, words, environ) != 0) {
        abort();
      }
      await(pid);
    } else if (strcmp(mode, "threads") == 0) {
      pthread_t one;
      if (pthread_create(&one, NULL, thread, NULL) != 0) {
        abort();
      }
      pthread_join(one, NULL);
    } else {
      pid = fork();
      if (pid == 0) {
        if (strcmp(mode, "recorded-fork") == 0) {
          range();
        }
        _exit(0);
      }
      await(pid);
    }
  }
  printf("%f %f\n", (double)(now() - begin) / count, (double)(cpu() - begin_cpu) / count);
  return 0;
}
