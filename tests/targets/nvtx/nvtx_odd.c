// nvtx_odd MODE [COUNT]: what few programs do. Prints "done" at the end, where it gets there.
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static long count;
static pthread_barrier_t barrier;

static void *one_range(void *together) {
  nvtxRangePushA("in thread");
  nvtxRangePop();
  if (together != NULL) {
    pthread_barrier_wait(&barrier);
  }
  return NULL;
}

static void threads(int together) {
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 << 10);
  pthread_t *all = calloc((size_t)count, sizeof(*all));
  pthread_barrier_init(&barrier, NULL, (unsigned)count);
  for (long i = 0; i < count; ++i) {
    if (pthread_create(&all[i], &small, one_range, together ? all : NULL) != 0) {
      perror("pthread_create");
      exit(1);
    }
    if (!together) {
      pthread_join(all[i], NULL);
    }
  }
  for (long i = 0; together && i < count; ++i) {
    pthread_join(all[i], NULL);
  }
  free(all);
}

static void names(void) {
  char *lengthy = malloc(1 << 20);
  memset(lengthy, 'x', 1 << 20);
  lengthy[(1 << 20) - 1] = '\0';
  const char *all[] = {lengthy, "", "bad \xff\xfe utf-8", "half \xe2\x82", "tab\tnew\nline \x1b[31mred", "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", NULL};
  for (int i = 0; i < 7; ++i) {
    nvtxRangePushA(all[i]);
    nvtxRangePop();
  }
  nvtxRangePushEx(NULL);
  nvtxRangePop();
  free(lengthy);
}

static void domains(void) {
  char name[32];
  nvtxEventAttributes_t e = {0};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  for (long i = 0; i < count; ++i) {
    snprintf(name, sizeof(name), "domain %ld", i);
    nvtxDomainHandle_t domain = nvtxDomainCreateA(name);
    nvtxDomainRangePushEx(domain, &e);
    nvtxDomainRangePop(domain);
  }
}

static atomic_int enough;

static void *busy(void *unused) {
  (void)unused;
  char name[32];
  for (long i = 0; !atomic_load(&enough); ++i) {
    snprintf(name, sizeof(name), "busy %ld", i % 5000);
    nvtxRangePushA(name);
    nvtxRangeEnd(nvtxRangeStartA("busy"));
    nvtxRangePop();
    if (i % 64 == 0) {
      usleep(100);
    }
  }
  return NULL;
}

// Forks while other threads are in the middle of recording; each child records and ends.
static void children(long threads) {
  pthread_t all[4];
  for (long i = 0; i < threads; ++i) {
    pthread_create(&all[i], NULL, busy, NULL);
  }
  int failed = 0;
  for (long i = 0; i < count; ++i) {
    pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a lock that is held for ever ends the child with SIGALRM
      char name[32];
      snprintf(name, sizeof(name), "child %ld", i);
      nvtxRangePushA(name);
      nvtxRangePop();
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  atomic_store(&enough, 1);
  for (long i = 0; i < threads; ++i) {
    pthread_join(all[i], NULL);
  }
  printf("failed %d\n", failed);
}

static void annotate_in_handler(int number) {
  static long calls;
  (void)number;
  char name[32];
  snprintf(name, sizeof(name), "handler %ld", calls++);
  nvtxRangePushA(name);
  nvtxRangeEnd(nvtxRangeStartA("handler"));
  nvtxRangePop();
}

// A profiling timer whose handler annotates, as samplers do: it may interrupt any of our own calls.
static void signals(void) {
  struct sigaction action = {0};
  action.sa_handler = annotate_in_handler;
  sigaction(SIGPROF, &action, NULL);
  struct itimerval often = {{0, 100}, {0, 100}};
  setitimer(ITIMER_PROF, &often, NULL);
  char name[32];
  for (long i = 0; i < count; ++i) {
    snprintf(name, sizeof(name), "main %ld", i);
    nvtxRangePushA(name);
    nvtxRangeEnd(nvtxRangeStartA("main"));
    nvtxRangePop();
  }
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &never, NULL);
}

static void *remain(void *unused) {
  (void)unused;
  usleep(50000);
  for (long i = 0; i < count; ++i) {
    nvtxRangePushA("range");
    nvtxRangePop();
  }
  return NULL;
}

// The main thread ends, the process goes on with another one.
static void leave(void) {
  pthread_t other;
  pthread_create(&other, NULL, remain, NULL);
  pthread_detach(other);
  pthread_exit(NULL);
}

static void limited(int resource, rlim_t limit) {
  struct rlimit both = {limit, limit};
  setrlimit(resource, &both);
  for (long i = 0; i < count; ++i) {
    nvtxRangePushA("range");
    nvtxRangePop();
  }
}

int main(int words, char **arguments) {
  const char *mode = words > 1 ? arguments[1] : "";
  count = words > 2 ? atol(arguments[2]) : 1;
  nvtxRangePushA("first");
  nvtxRangePop();
  nvtxRangePushA("open");
  if (strcmp(mode, "segv") == 0) {
    raise(SIGSEGV);
  } else if (strcmp(mode, "null") == 0) {
    *(volatile int *)NULL = 1;
  } else if (strcmp(mode, "abort") == 0) {
    abort();
  } else if (strcmp(mode, "_exit") == 0) {
    _exit(5);
  } else if (strcmp(mode, "one by one") == 0) {
    threads(0);
  } else if (strcmp(mode, "together") == 0) {
    threads(1);
  } else if (strcmp(mode, "names") == 0) {
    names();
  } else if (strcmp(mode, "domains") == 0) {
    domains();
  } else if (strcmp(mode, "children") == 0) {
    children(0);
  } else if (strcmp(mode, "children of threads") == 0) {
    children(4);
  } else if (strcmp(mode, "signals") == 0) {
    signals();
  } else if (strcmp(mode, "leave") == 0) {
    leave();
  } else if (strcmp(mode, "files") == 0) {
    limited(RLIMIT_NOFILE, 3);
  } else if (strcmp(mode, "file size") == 0) {
    limited(RLIMIT_FSIZE, 1 << 20);
  } else if (strcmp(mode, "memory") == 0) {
    limited(RLIMIT_AS, 32 << 20);
  } else {
    return 9;
  }
  nvtxRangePop();
  puts("done");
  return 0;
}
