/* What a call costs with the wrappers before it, and without: both in turns in one process, ns. Prints JSON: for each call the medians of
 * "through" (as programs call it), "bare" (the C library's own) and "again" (that once more), and of the differences from bare. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 301, CALLS = 2000 };

static int g_zero, g_null, g_ends[2];
static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t g_semaphore;
static char g_byte;

struct Calls {
  ssize_t (*read)(int, void *, size_t);
  ssize_t (*write)(int, const void *, size_t);
  int (*poll)(struct pollfd *, nfds_t, int);
  int (*lock)(pthread_mutex_t *);
  int (*unlock)(pthread_mutex_t *);
  int (*wait)(sem_t *);
  int (*post)(sem_t *);
};

static void do_read(const struct Calls *calls) {
  calls->read(g_zero, &g_byte, 1);
}
static void do_write(const struct Calls *calls) {
  calls->write(g_null, &g_byte, 1);
}
static void do_poll(const struct Calls *calls) {
  struct pollfd of = {.fd = g_ends[1], .events = POLLOUT};
  calls->poll(&of, 1, -1);
}
static void do_mutex(const struct Calls *calls) {
  calls->lock(&g_mutex);
  calls->unlock(&g_mutex);
}
static void do_semaphore(const struct Calls *calls) {
  calls->post(&g_semaphore);
  calls->wait(&g_semaphore);
}

static double time_of(void (*body)(const struct Calls *), const struct Calls *calls) {
  struct timespec from, to;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  for (int i = 0; i < CALLS; ++i) {
    body(calls);
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / CALLS;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double middle(double *values) {
  qsort(values, ROUNDS, sizeof(double), compare);
  return values[ROUNDS / 2];
}

static void measure(const char *name, void (*body)(const struct Calls *), const struct Calls *bare,
                    const struct Calls *through) {
  static double b[ROUNDS], t[ROUNDS], a[ROUNDS], cost[ROUNDS], noise[ROUNDS];
  for (int i = 0; i < ROUNDS; ++i) {
    b[i] = time_of(body, bare);
    t[i] = time_of(body, through);
    a[i] = time_of(body, bare);
    cost[i] = t[i] - (a[i] + b[i]) / 2;
    noise[i] = a[i] - b[i];
  }
  printf("%s\"%s\": {\"bare\": %.2f, \"through\": %.2f, \"again\": %.2f, \"cost\": %.2f, \"noise\": %.2f}",
         ", ", name, middle(b), middle(t), middle(a), middle(cost), middle(noise));
}

static void *stay(void *nothing) {
  for (;;) pause();
  return nothing;
}

int main(void) {
  void *libc = dlopen("libc.so.6", RTLD_LAZY);
#define BARE(type, name) (__typeof__(((struct Calls *)0)->type))dlsym(libc, #name)
  struct Calls bare = {BARE(read, read),
                       BARE(write, write),
                       BARE(poll, poll),
                       BARE(lock, pthread_mutex_lock),
                       BARE(unlock, pthread_mutex_unlock),
                       BARE(wait, sem_wait),
                       BARE(post, sem_post)};
  struct Calls through = {read, write, poll, pthread_mutex_lock, pthread_mutex_unlock, sem_wait, sem_post};
  g_zero = open("/dev/zero", O_RDONLY);
  g_null = open("/dev/null", O_WRONLY);
  sem_init(&g_semaphore, 0, 0);
  if (pipe(g_ends) != 0) return 1;
  printf("{\"wrapped\": %d", bare.read != through.read);
  measure("mutex", do_mutex, &bare, &through);
  pthread_t thread;
  if (pthread_create(&thread, NULL, stay, NULL) != 0) return 1;
  measure("mutex_threads", do_mutex, &bare, &through);
  measure("semaphore", do_semaphore, &bare, &through);
  measure("read", do_read, &bare, &through);
  measure("write", do_write, &bare, &through);
  measure("poll", do_poll, &bare, &through);
  printf("}\n");
  return 0;
}
