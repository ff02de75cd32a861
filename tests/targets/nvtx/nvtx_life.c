// nvtx_life MODE …: how the agent lives in a process. The agent is the library that NVTX_INJECTION64_PATH names.
//   restart FOLDER…    records once into each folder, with handles made before the first
//   join early|late    forks while a fork handler of the program waits for a thread that annotates
//   storm COUNT [US [alone]]   a timer's handler annotates while threads annotate, end and (unless "alone") fork
//   busy FOLDER…       threads annotate all the time while recordings begin and end
//   fork FOLDER        a child goes on with a recording that was begun by hand, and begins one of its own
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int (*start_recording)(const char *);
static int (*stop_recording)(void);
static uint64_t (*attached)(char *, uint64_t);

static void find_agent(void) {
  void *agent = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_NOW);
  start_recording = (int (*)(const char *))dlsym(agent, "warplens_start");
  stop_recording = (int (*)(void))dlsym(agent, "warplens_stop");
  attached = (uint64_t (*)(char *, uint64_t))dlsym(agent, "warplens_attached");
}

static void range(const char *name) {
  nvtxRangePushA(name);
  nvtxRangePop();
}

static void restart(int count, char **folders) {
  char name[64];
  find_agent();
  printf("stop %d\n", stop_recording());
  nvtxDomainHandle_t domain = nvtxDomainCreateA("early");
  nvtxEventAttributes_t e = {0};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.category = 3;
  e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  e.message.registered = nvtxDomainRegisterStringA(domain, "registered early");
  nvtxDomainNameCategoryA(domain, 3, "named early");
  range("before");
  printf("push %d\n", nvtxRangePushA("nobody listens"));
  nvtxRangeId_t id = 0;
  for (int i = 0; i < count; ++i) {
    printf("start %d", start_recording(folders[i]));
    printf(" again %d\n", start_recording(folders[i]));
    nvtxRangeEnd(id);  // of the recording before
    nvtxDomainRangePushEx(domain, &e);
    nvtxDomainRangePop(domain);
    snprintf(name, sizeof(name), "recording %d", i);
    for (int k = 0; k < 3000; ++k) {
      range(name);
    }
    nvtxDomainMarkEx(nvtxDomainCreateA(name), &e);
    nvtxRangePushA("left open");
    id = nvtxRangeStartA("left running");
    printf("stop %d\n", stop_recording());
    range("between");
    e.message.registered = nvtxDomainRegisterStringA(domain, "registered between");
  }
  char paths[4096];
  printf("attached %s", attached(paths, sizeof(paths)) < sizeof(paths) ? paths : "?\n");
}

static atomic_int enough;
static pthread_t annotating;

static void *annotate(void *unused) {
  (void)unused;
  char name[32];
  for (unsigned i = 0; !atomic_load(&enough); ++i) {
    snprintf(name, sizeof(name), "worker %u", i);
    nvtxRangePushA(name);
    nvtxRangeEnd(nvtxRangeStartA(name));
    nvtxRangePop();
    nvtxNameOsThreadA(i % 8, name);  // asks for the clock outside of recordings, too
  }
  return NULL;
}

static void join_it(void) {
  atomic_store(&enough, 1);
  if (annotating != 0) {
    pthread_join(annotating, NULL);
    annotating = 0;
  }
  range("in the fork handler");
}

static void in_child(void) {
  range("in the child's fork handler");
}

static void forked(void) {
  nvtxRangePushA("parent");
  pid_t child = fork();
  if (child == 0) {
    range("child");
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  nvtxRangePop();
  printf("child %d\n", status);
}

static void join(const char *when) {
  if (strcmp(when, "early") == 0) {
    pthread_atfork(join_it, NULL, in_child);
  }
  range("first");
  if (strcmp(when, "late") == 0) {
    pthread_atfork(join_it, NULL, in_child);
  }
  pthread_create(&annotating, NULL, annotate, NULL);
  usleep(20000);
  forked();
}

static void annotate_in_handler(int number) {
  static _Atomic unsigned calls;
  (void)number;
  char name[32];
  snprintf(name, sizeof(name), "handler %u", atomic_fetch_add(&calls, 1));
  nvtxRangePushA(name);
  nvtxRangeEnd(nvtxRangeStartA(name));
  nvtxDomainCreateA(name);
  nvtxRangePop();
}

static void *short_life(void *number) {
  char name[32];
  for (int i = 0; i < 50; ++i) {
    snprintf(name, sizeof(name), "thread %ld %d", (long)number, i);
    range(name);
  }
  return NULL;
}

static void storm(long count, long every, int forks) {
  struct sigaction action = {0};
  action.sa_handler = annotate_in_handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, NULL);
  // A handler that comes while the thread it interrupts is in NVTX's own first call would wait for that thread for ever.
  nvtxInitialize(NULL);
  struct itimerval often = {{0, every}, {0, every}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (long i = 0; i < count; ++i) {
    pthread_t threads[3];
    for (long k = 0; k < 3; ++k) {
      pthread_create(&threads[k], NULL, short_life, (void *)(i * 3 + k));
    }
    if (forks && i % 8 == 0) {
      pid_t child = fork();
      if (child == 0) {
        setitimer(ITIMER_REAL, &often, NULL);
        short_life((void *)-1);
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) {
        printf("child %d\n", status);
      }
    }
    for (int k = 0; k < 3; ++k) {
      pthread_join(threads[k], NULL);
    }
  }
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
}

static void busy(int count, char **folders) {
  pthread_t threads[3];
  find_agent();
  nvtxInitialize(NULL);  // NVTX itself does not order its first calls
  for (int i = 0; i < 3; ++i) {
    pthread_create(&threads[i], NULL, annotate, NULL);
  }
  for (int i = 0; i < count; ++i) {
    int started = start_recording(folders[i]);
    usleep(5000);
    printf("%d %d\n", started, stop_recording());
    usleep(i % 2 == 0 ? 500 : 0);
  }
  atomic_store(&enough, 1);
  for (int i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
  }
}

static void fork_by_hand(char **folders) {
  find_agent();
  printf("start %d\n", start_recording(folders[0]));
  nvtxRangePushA("outer");
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    range("child");
    printf("child: start %d", start_recording(folders[1]));
    printf(" stop %d", stop_recording());
    printf(" start %d\n", start_recording(folders[1]));
    range("child alone");
    fflush(stdout);
    _exit(0);
  }
  waitpid(child, NULL, 0);
  nvtxRangePop();
  printf("stop %d\n", stop_recording());
}

int main(int words, char **arguments) {
  const char *mode = words > 2 ? arguments[1] : "";
  if (strcmp(mode, "restart") == 0) {
    restart(words - 2, arguments + 2);
  } else if (strcmp(mode, "join") == 0) {
    join(arguments[2]);
  } else if (strcmp(mode, "storm") == 0) {
    storm(atol(arguments[2]), words > 3 ? atol(arguments[3]) : 2000, words < 5);
  } else if (strcmp(mode, "busy") == 0) {
    busy(words - 2, arguments + 2);
  } else if (strcmp(mode, "fork") == 0 && words > 3) {
    fork_by_hand(arguments + 2);
  } else {
    return 9;
  }
  puts("done");
  return 0;
}
