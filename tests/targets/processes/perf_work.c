/* Work for samplers to see: what, says the first word. Loops end by the CPU time they took, never by the clock on the wall. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

static volatile double sink;

static double cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

APART void innermost_work(int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) {
    sum += i * 0.5;
  }
  sink = sum;
}

APART int middle_work(int count) {
  char bytes[100];
  memset(bytes, count, sizeof(bytes));
  innermost_work(count);
  return bytes[count % 100] + 1;
}

APART int outer_work(double seconds) {
  int sum = 0;
  for (double end = cpu_seconds() + seconds; cpu_seconds() < end;) {
    sum += middle_work(50000);
  }
  return sum;
}

/* Its time is the kernel's. */
APART int read_much(double seconds) {
  static char bytes[1 << 20];
  int file = open("/dev/urandom", O_RDONLY), sum = 0;
  for (double end = cpu_seconds() + seconds; cpu_seconds() < end;) {
    sum += (int)read(file, bytes, sizeof(bytes)) != 0;
  }
  close(file);
  return sum;
}

static void *short_thread(void *argument) {
  (void)argument;
  outer_work(0.005);
  return NULL;
}

static void *last(void *argument) {
  nanosleep(&(struct timespec){0, 50000000}, NULL);
  outer_work(0.05);
  puts("done");
  fflush(stdout);
  return argument;
}

/* The main thread ends, and the process with the other one. */
static void leave(void) {
  pthread_t thread;
  pthread_create(&thread, NULL, last, NULL);
  pthread_detach(thread);
  pthread_exit(NULL);
}

#ifdef LARGE
/* Each thread has this much of its own, whoever begins it. */
static __thread char g_large[LARGE];
#else
static __thread char g_large[1];
#endif

static void *sleeper(void *argument) {
  (void)argument;
  for (int i = 0; i < 20; i++) {
    nanosleep(&(struct timespec){0, 5000000}, NULL);
  }
  return NULL;
}

static void *busy(void *argument) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(*(int *)argument, &one);
  sched_setaffinity(0, sizeof(one), &one);
  outer_work(0.4);
  return NULL;
}

static void many_threads(int count) {
  while (count > 0) {
    pthread_t threads[50];
    int n = count < 50 ? count : 50;
    for (int i = 0; i < n; i++) {
      pthread_create(&threads[i], NULL, short_thread, NULL);
    }
    for (int i = 0; i < n; i++) {
      pthread_join(threads[i], NULL);
    }
    count -= n;
  }
}

static void states(void) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  int first = 0;
  while (!CPU_ISSET(first, &allowed)) {
    first++;
  }
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, sleeper, NULL);
  pthread_create(&threads[1], NULL, busy, &first);
  pthread_create(&threads[2], NULL, busy, &first);
  for (int i = 0; i < 3; i++) {
    pthread_join(threads[i], NULL);
  }
}

static void libraries(int count) {
  for (int i = 0; i < count; i++) {
    void *library = dlopen(i % 2 != 0 ? "libresolv.so.2" : "libutil.so.1", RTLD_NOW);
    innermost_work(20000);
    if (library != NULL) {
      dlclose(library);
    }
  }
}

static void forks(int count) {
  for (int i = 0; i < count; i++) {
    pid_t child = fork();
    if (child == 0) {
      innermost_work(1000);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

/* From here on, and in what is run, perf events are forbidden. */
static void deny(char **command) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    exit(77);
  }
  execvp(command[0], command);
  exit(78);
}

int main(int count, char **words) {
  const char *what = count > 1 ? words[1] : "calls";
  memset(g_large, count, sizeof(g_large));
  if (strcmp(what, "calls") == 0) {
    outer_work(1);
  } else if (strcmp(what, "reads") == 0) {
    read_much(1);
  } else if (strcmp(what, "states") == 0) {
    states();
  } else if (strcmp(what, "threads") == 0) {
    many_threads(200);
  } else if (strcmp(what, "libraries") == 0) {
    libraries(3000);
  } else if (strcmp(what, "forks") == 0) {
    forks(100);
    outer_work(0.3);
  } else if (strcmp(what, "exec") == 0) {
    outer_work(0.2);
    execl(words[0], words[0], "calls", (char *)NULL);
  } else if (strcmp(what, "leave") == 0) {
    leave();
  } else if (strcmp(what, "deny") == 0 && count > 2) {
    deny(words + 2);
  } else {
    return 2;
  }
  puts("done");
  return 0;
}
