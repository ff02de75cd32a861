// torture TRUTH FLAGS MODE RANGES COUNT: ranges from processes and threads of every kind, and a log of its own about them.
//
// A record of 64 bytes goes to TRUTH (O_APPEND) whenever a program began, after the pop of each range returned, and before the
// first process exits. FLAGS: d no pauses (dense), h end in an orderly way at SIGTERM, SIGINT and SIGHUP, c a child (says nothing),
// e the same process after an exec (has said "begin").
#define _GNU_SOURCE
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANGE = 1, HELLO = 2, GOODBYE = 3 };

struct truth {
  uint32_t pid, thread;
  uint64_t number, before_start, after_start, before_end, after_end;
  uint32_t kind, reserved;
  uint64_t time;
};
_Static_assert(sizeof(struct truth) == 64, "a record never crosses a page, so that a kill never halves it");

static char **words;
static int log_fd, dense, ranges, count;
static volatile sig_atomic_t stopped;

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void tell(struct truth *record) {
  record->pid = (uint32_t)syscall(SYS_getpid);
  record->time = now();
  if (write(log_fd, record, sizeof(*record)) != sizeof(*record)) {
    abort();
  }
}

static void tell_kind(uint32_t kind, uint64_t number) {
  struct truth record = {.kind = kind, .number = number};
  tell(&record);
}

static void push(struct truth *record, const char *name) {
  nvtxEventAttributes_t e = {0};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.messageType = NVTX_MESSAGE_TYPE_ASCII;
  e.message.ascii = name;
  e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  e.payload.ullValue = record->number;
  record->before_start = now();
  nvtxRangePushEx(&e);
  record->after_start = now();
}

static void pop(struct truth *record) {
  record->before_end = now();
  nvtxRangePop();
  record->after_end = now();
  tell(record);
}

static void work(uint32_t thread, int pairs) {
  char name[16];
  snprintf(name, sizeof(name), "t%u", thread);
  for (int i = 0; i < pairs && !stopped; ++i) {
    struct truth outer = {.thread = thread, .kind = RANGE, .number = 2 * (uint64_t)i};
    struct truth inner = {.thread = thread, .kind = RANGE, .number = 2 * (uint64_t)i + 1};
    push(&outer, name);
    push(&inner, name);
    pop(&inner);
    pop(&outer);
    if (!dense) {
      nanosleep(&(struct timespec){0, 50000}, NULL);
    }
  }
}

static void *thread_work(void *thread) {
  work((uint32_t)(uintptr_t)thread, ranges);
  return NULL;
}

static void *one_range(void *thread) {
  work((uint32_t)(uintptr_t)thread, 1);
  return NULL;
}

static void threads(void *(*body)(void *), int first, int many) {
  pthread_t all[64];
  for (int done = 0; done < many;) {
    int some = many - done < 64 ? many - done : 64;
    for (int i = 0; i < some; ++i) {
      if (pthread_create(&all[i], NULL, body, (void *)(uintptr_t)(first + done + i)) != 0) {
        abort();
      }
    }
    for (int i = 0; i < some; ++i) {
      pthread_join(all[i], NULL);
    }
    done += some;
  }
}

// The words of this program again, with another mode; a child says nothing.
static char **again(const char *mode, char *number) {
  static char flags[8];
  static char *line[7];
  snprintf(flags, sizeof(flags), "%s%sc", dense ? "d" : "", strchr(words[2], 'h') ? "h" : "");
  char *all[] = {words[0], words[1], flags, (char *)mode, words[4], number, NULL};
  memcpy(line, all, sizeof(line));
  return line;
}

static void await(pid_t pid) {
  while (waitpid(pid, NULL, 0) < 0) {
  }
}

static void fork_children(int depth, int by_clone) {
  pid_t all[64];
  for (int i = 0; i < count; ++i) {
    all[i] = by_clone ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
    if (all[i] == 0) {
      tell_kind(HELLO, 0);
      work(1, ranges);
      if (depth > 1) {
        count = 1;
        fork_children(depth - 1, by_clone);
      }
      _exit(0);
    }
  }
  work((uint32_t)(20 + depth), ranges);
  for (int i = 0; i < count; ++i) {
    if (all[i] > 0) {
      await(all[i]);
    }
  }
}

static void run_children(const char *mode, char *const *environment, int by_vfork) {
  for (int i = 0; i < count && !stopped; ++i) {
    char **line = again(mode, "1");
    pid_t pid = 0;
    if (by_vfork) {
      pid = vfork();
      if (pid == 0) {
        execve("/proc/self/exe", line, environment);
        _exit(127);
      }
    } else if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, line, environment) != 0) {
      abort();
    }
    work((uint32_t)(100 + i), ranges / 4 + 1);
    await(pid);
  }
}

static void daemonize(void) {
  pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() == 0) {
      tell_kind(HELLO, 0);
      work(1, ranges);
    }
    _exit(0);
  }
  work(2, ranges / 4 + 1);
  await(child);
}

static void stop(int number) {
  (void)number;
  stopped = 1;
}

int main(int argc, char **argv) {
  if (argc != 6) {
    return 2;
  }
  words = argv;
  dense = strchr(argv[2], 'd') != NULL;
  int child = strchr(argv[2], 'c') != NULL;
  if (strchr(argv[2], 'h') != NULL) {
    struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
  }
  ranges = atoi(argv[4]);
  count = atoi(argv[5]);
  log_fd = open(argv[1], O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (log_fd < 0) {
    return 2;
  }
  if (!child && strchr(argv[2], 'e') == NULL && write(1, "begin\n", 6) != 6) {
    return 2;
  }
  tell_kind(HELLO, (uint64_t)!child);
  const char *mode = argv[3];
  char *nothing[] = {NULL};
  if (strcmp(mode, "work") == 0) {
    work(3, ranges);
  } else if (strcmp(mode, "short") == 0) {
    work(3, 1);
  } else if (strcmp(mode, "threads") == 0) {
    threads(thread_work, 1000, count);
  } else if (strcmp(mode, "one-range") == 0) {
    threads(one_range, 1000, count);
  } else if (strcmp(mode, "fork") == 0) {
    fork_children(2, 0);
  } else if (strcmp(mode, "clone") == 0) {
    fork_children(1, 1);
  } else if (strcmp(mode, "vfork") == 0) {
    run_children("work", environ, 1);
  } else if (strcmp(mode, "shorts") == 0) {
    run_children("short", environ, 0);
  } else if (strcmp(mode, "empty") == 0) {
    run_children("work", nothing, 0);
  } else if (strcmp(mode, "empty-vfork") == 0) {
    run_children("work", nothing, 1);
  } else if (strcmp(mode, "daemon") == 0) {
    daemonize();
  } else if (strcmp(mode, "exec") == 0) {
    work((uint32_t)(10 + count), ranges);
    if (count > 1) {
      char left[12];
      snprintf(left, sizeof(left), "%d", count - 1);
      char *line[] = {argv[0], argv[1], argv[2], argv[3], argv[4], left, NULL};
      if (!child) {  // the next program says "end"; "begin" is said
        static char flags[8];
        snprintf(flags, sizeof(flags), "%.5se", argv[2]);
        line[2] = strchr(argv[2], 'e') != NULL ? argv[2] : flags;
      }
      execv("/proc/self/exe", line);
      return 2;
    }
  } else {
    return 2;
  }
  int code = stopped ? 7 : 0;
  if (!child) {
    char line[32];
    int size = snprintf(line, sizeof(line), "end %d\n", code);
    if (write(1, line, (size_t)size) != size) {
      return 2;
    }
    tell_kind(GOODBYE, (uint64_t)code);
  }
  return code;
}
