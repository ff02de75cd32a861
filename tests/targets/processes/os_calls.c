/* Calls of the C library of all groups, each long enough to be seen, or as its arguments say. Prints one line per step; exits with 0
 * where all of them behaved as they do alone. os_calls STEP [FOLDER] */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno); \
      exit(3);                                                                  \
    }                                                                           \
  } while (0)

static const struct timespec g_short = {0, 20000000};

static struct timespec in(clockid_t clock, long ms) {
  struct timespec at;
  clock_gettime(clock, &at);
  at.tv_nsec += ms * 1000000;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  return at;
}

/* A wrong pointer that the compiler does not see. */
static void *volatile g_nowhere = (void *)8;

static void files(const char *folder) {
  char path[4096], other[4096];
  snprintf(path, sizeof(path), "%s/data", folder);
  snprintf(other, sizeof(other), "%s/other", folder);
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0640);
  CHECK(fd >= 0);
  struct stat facts;
  CHECK(stat(path, &facts) == 0 && (facts.st_mode & 0777) == 0640);
  CHECK(write(fd, "0123456789", 10) == 10);
  struct iovec parts[2] = {{"abc", 3}, {"de", 2}};
  CHECK(writev(fd, parts, 2) == 5);
  char room[16];
  CHECK(pread(fd, room, 16, 12) == 3);
  CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, room, 16) == 15);
  CHECK(fsync(fd) == 0 && ftruncate(fd, 4) == 0);
  errno = 0;
  CHECK(read(fd, g_nowhere, 4) == 0 || errno == EFAULT);
  CHECK(close(fd) == 0);
  CHECK(rename(path, other) == 0 && unlink(other) == 0);
  CHECK(open(path, O_RDONLY) == -1 && errno == ENOENT);
  CHECK(open(g_nowhere, O_RDONLY) == -1 && errno == EFAULT);
  CHECK(readv(0, g_nowhere, 3) == -1 && (errno == EFAULT || errno == EBADF));
  CHECK(read(-1, room, 1) == -1 && errno == EBADF);
  FILE *file = fopen(path, "w");
  CHECK(file != NULL && fwrite("hello\n", 1, 6, file) == 6 && fflush(file) == 0 && fclose(file) == 0);
  file = fopen(path, "r");
  CHECK(file != NULL && fgets(room, sizeof(room), file) != NULL && strcmp(room, "hello\n") == 0);
  CHECK(fclose(file) == 0);
}

static void *after_a_while(void *argument) {
  nanosleep(&g_short, NULL);
  int *fds = argument;
  CHECK(write(fds[1], "x", 1) == 1);
  return NULL;
}

static void waits(const char *folder) {
  (void)folder;
  int ends[2];
  char one;
  pthread_t thread;
  CHECK(pipe(ends) == 0);
  CHECK(pthread_create(&thread, NULL, after_a_while, ends) == 0);
  struct pollfd poll_of = {.fd = ends[0], .events = POLLIN};
  CHECK(poll(&poll_of, 1, -1) == 1 && read(ends[0], &one, 1) == 1);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(pthread_create(&thread, NULL, after_a_while, ends) == 0);
  CHECK(read(ends[0], &one, 1) == 1);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(poll(&poll_of, 1, 20) == 0);
  int epoll = epoll_create1(0);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = ends[0]};
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
  CHECK(epoll_wait(epoll, &event, 1, 20) == 0);
  fd_set set;
  FD_ZERO(&set);
  FD_SET(ends[0], &set);
  struct timeval most = {0, 20000};
  CHECK(select(ends[0] + 1, &set, NULL, NULL, &most) == 0);
  CHECK(usleep(20000) == 0 && nanosleep(&g_short, NULL) == 0);
  CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &g_short, NULL) == 0);
  CHECK(clock_nanosleep(99, 0, &g_short, NULL) == EINVAL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  CHECK(sigprocmask(SIG_BLOCK, &signals, NULL) == 0);
  CHECK(sigtimedwait(&signals, NULL, &g_short) == -1 && errno == EAGAIN);
}

static void sockets(const char *folder) {
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof(own);
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(bind(listener, (struct sockaddr *)&own, size) == 0 && listen(listener, 1) == 0);
  CHECK(getsockname(listener, (struct sockaddr *)&own, &size) == 0);
  int client = socket(AF_INET, SOCK_STREAM, 0);
  CHECK(connect(client, (struct sockaddr *)&own, size) == 0);
  int server = accept(listener, NULL, NULL);
  CHECK(server >= 0 && send(client, "12345", 5, 0) == 5);
  char room[8];
  CHECK(recv(server, room, sizeof(room), 0) == 5);
  struct timeval most = {0, 20000};
  CHECK(setsockopt(server, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0);
  CHECK(recv(server, room, sizeof(room), 0) == -1 && errno == EAGAIN);
  printf("port %d\n", ntohs(own.sin_port));
  struct sockaddr_un local = {.sun_family = AF_UNIX};
  snprintf(local.sun_path, sizeof(local.sun_path), "%s/s", folder);
  int named = socket(AF_UNIX, SOCK_DGRAM, 0);
  CHECK(bind(named, (struct sockaddr *)&local, sizeof(local)) == 0);
  CHECK(setsockopt(named, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)) == 0);
  CHECK(recv(named, room, sizeof(room), 0) == -1 && errno == EAGAIN);
  close(server);
  close(client);
  close(listener);
  close(named);
}

static pthread_mutex_t g_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t g_lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t g_semaphore;

/* Until the first thread waits for what we hold. */
static void until_it_waits(void) {
  char path[64], line[256], *state = NULL;
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
  do {
    int fd = open(path, O_RDONLY);
    ssize_t size = read(fd, line, sizeof(line) - 1);
    close(fd);
    CHECK(size > 0);
    line[size] = 0;
    state = strrchr(line, ')');
    usleep(2000);
  } while (state == NULL || state[2] != 'S');
}

static void *hold(void *ready) {
  CHECK(pthread_mutex_lock(&g_mutex) == 0 && pthread_rwlock_wrlock(&g_lock) == 0);
  sem_post(ready);
  until_it_waits();
  pthread_rwlock_unlock(&g_lock);
  until_it_waits();
  pthread_mutex_unlock(&g_mutex);
  until_it_waits();
  sem_post(&g_semaphore);
  return NULL;
}

static void locks(const char *folder) {
  (void)folder;
  sem_t ready;
  pthread_t thread;
  sem_init(&g_semaphore, 0, 1);
  sem_init(&ready, 0, 0);
  for (int i = 0; i < 1000; ++i) {
    CHECK(pthread_mutex_lock(&g_mutex) == 0 && pthread_mutex_unlock(&g_mutex) == 0);
    errno = 77;
    CHECK(sem_wait(&g_semaphore) == 0 && sem_post(&g_semaphore) == 0 && errno == 77);
  }
  CHECK(sem_wait(&g_semaphore) == 0);
  CHECK(pthread_create(&thread, NULL, hold, &ready) == 0);
  CHECK(sem_wait(&ready) == 0);
  CHECK(pthread_rwlock_rdlock(&g_lock) == 0 && pthread_rwlock_unlock(&g_lock) == 0);
  CHECK(pthread_mutex_lock(&g_mutex) == 0 && pthread_mutex_unlock(&g_mutex) == 0);
  errno = 77;
  CHECK(sem_wait(&g_semaphore) == 0 && errno == 77);
  CHECK(pthread_join(thread, NULL) == 0);
  struct timespec until = in(CLOCK_REALTIME, 20), wrong = {0, -1};
  CHECK(sem_timedwait(&g_semaphore, &until) == -1 && errno == ETIMEDOUT);
  CHECK(sem_timedwait(&g_semaphore, &wrong) == -1 && errno == EINVAL);
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  CHECK(pthread_mutex_lock(&g_mutex) == 0);
  until = in(CLOCK_REALTIME, 20);
  CHECK(pthread_cond_timedwait(&condition, &g_mutex, &until) == ETIMEDOUT);
  CHECK(pthread_mutex_unlock(&g_mutex) == 0);
  pthread_mutexattr_t how;
  pthread_mutex_t strict;
  pthread_mutexattr_init(&how);
  pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(&strict, &how);
  CHECK(pthread_mutex_lock(&strict) == 0 && pthread_mutex_lock(&strict) == EDEADLK);
  CHECK(pthread_mutex_unlock(&strict) == 0 && pthread_mutex_unlock(&strict) == EPERM);
}

static volatile int g_cleaned;

static void clean(void *nothing) {
  (void)nothing;
  g_cleaned = 1;
}

static void *block(void *argument) {
  char one;
  pthread_cleanup_push(clean, NULL);
  CHECK(write(((int *)argument)[3], "x", 1) == 1);
  read(((int *)argument)[0], &one, 1);
  pthread_cleanup_pop(0);
  return NULL;
}

/* A thread that is cancelled while it waits; another that is cancelled before a semaphore that is free. */
static void *take_when_cancelled(void *argument) {
  sem_t *free_one = argument;
  pthread_cleanup_push(clean, NULL);
  pthread_cancel(pthread_self());
  sem_wait(free_one);
  pthread_cleanup_pop(0);
  return NULL;
}

static void cancelled(const char *folder) {
  (void)folder;
  int ends[4];
  pthread_t thread;
  void *result;
  char one;
  CHECK(pipe(ends) == 0 && pipe(ends + 2) == 0);
  CHECK(pthread_create(&thread, NULL, block, ends) == 0 && read(ends[2], &one, 1) == 1);
  CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED && g_cleaned == 1);
  sem_t free_one;
  sem_init(&free_one, 0, 1);
  g_cleaned = 0;
  CHECK(pthread_create(&thread, NULL, take_when_cancelled, &free_one) == 0);
  CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED && g_cleaned == 1);
}

static pthread_mutex_t g_owned = PTHREAD_MUTEX_INITIALIZER;
static volatile int g_waits, g_had_it;

static void *own(void *nothing) {
  (void)nothing;
  g_waits = 1;
  pthread_mutex_lock(&g_owned);
  g_had_it = 1;
  pthread_mutex_unlock(&g_owned);
  pthread_testcancel();
  return NULL;
}

/* A thread that is cancelled while it waits for a mutex: that is no place to end in, and the mutex would be lost. Nothing else here
 * takes long: it is the first call that is told of. */
static void cancelled_owner(const char *folder) {
  (void)folder;
  pthread_t thread;
  void *result;
  pthread_mutex_lock(&g_owned);
  CHECK(pthread_create(&thread, NULL, own, NULL) == 0);
  while (!g_waits) {
  }
  struct timespec now, until = in(CLOCK_MONOTONIC, 200);
  do {
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (now.tv_sec < until.tv_sec || (now.tv_sec == until.tv_sec && now.tv_nsec < until.tv_nsec));
  CHECK(pthread_cancel(thread) == 0);
  pthread_mutex_unlock(&g_owned);
  CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED && g_had_it);
  CHECK(pthread_mutex_trylock(&g_owned) == 0);
}

static int g_handled[2];
static sigjmp_buf g_back;

static void handle(int number) {
  (void)number;
  int saved = errno;
  struct timespec brief = {0, 2000000};
  nanosleep(&brief, NULL);
  CHECK(write(g_handled[1], "h", 1) == 1);
  errno = saved;
}

static void jump(int number) {
  (void)number;
  siglongjmp(g_back, 1);
}

/* A handler that calls what is wrapped while a wrapped call waits; and one that never returns to it. */
static void signals(const char *folder) {
  (void)folder;
  int ends[2];
  char one;
  CHECK(pipe(ends) == 0 && pipe(g_handled) == 0);
  struct sigaction how = {.sa_handler = handle};
  CHECK(sigaction(SIGALRM, &how, NULL) == 0);
  ualarm(20000, 20000); /* again and again: the first may come before the call */
  CHECK(read(ends[0], &one, 1) == -1 && errno == EINTR);
  ualarm(0, 0);
  CHECK(read(g_handled[0], &one, 1) == 1 && one == 'h');
  how.sa_handler = jump;
  CHECK(sigaction(SIGALRM, &how, NULL) == 0);
  if (sigsetjmp(g_back, 1) == 0) {
    ualarm(20000, 0);
    read(ends[0], &one, 1);
    CHECK(0);
  }
  nanosleep(&g_short, NULL);
}

static void children(const char *folder) {
  (void)folder;
  for (int i = 0; i < 60; ++i) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      usleep(1000);
      _exit(i & 0x7f);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == (i & 0x7f));
  }
  for (int i = 0; i < 20; ++i) {
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
      dup2(2, 1);
      execl("/bin/sh", "sh", "-c", "exit 5", (char *)NULL);
      _exit(1);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 5);
  }
  CHECK(WEXITSTATUS(system("exit 6")) == 6);
  char line[8];
  FILE *file = popen("echo seven", "r");
  CHECK(file != NULL && fgets(line, sizeof(line), file) != NULL && strcmp(line, "seven\n") == 0);
  CHECK(pclose(file) == 0);
}

/* As daemons do. */
static void closes(const char *folder) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/log", folder);
  for (int fd = 3; fd < 1024; ++fd) {
    close(fd);
  }
  int fd = open(path, O_WRONLY | O_CREAT, 0600);
  CHECK(fd == 3 && write(fd, "still here", 10) == 10 && fsync(fd) == 0);
  nanosleep(&g_short, NULL);
}

/* The first call of all that is long enough is one of a child that has its parent's memory. */
static void borrowed(const char *folder) {
  (void)folder;
  pid_t child = vfork();
  CHECK(child >= 0);
  if (child == 0) {
    nanosleep(&g_short, NULL);
    _exit(9);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WEXITSTATUS(status) == 9);
  nanosleep(&g_short, NULL);
}

static void uncontended(const char *folder) {
  (void)folder;
  for (int i = 0; i < 10000; ++i) {
    CHECK(pthread_mutex_lock(&g_mutex) == 0 && pthread_mutex_unlock(&g_mutex) == 0);
  }
}

static const struct {
  const char *name;
  void (*run)(const char *folder);
} g_steps[] = {{"files", files},
               {"waits", waits},
               {"sockets", sockets},
               {"locks", locks},
               {"cancelled", cancelled},
               {"signals", signals},
               {"cancelled_owner", cancelled_owner},
               {"children", children},
               {"closes", closes},
               {"borrowed", borrowed},
               {"uncontended", uncontended}};

int main(int count, char **words) {
  const char *folder = count > 2 ? words[2] : "/tmp";
  for (size_t i = 0; i < sizeof(g_steps) / sizeof(g_steps[0]); ++i) {
    if (count < 2 || strcmp(words[1], g_steps[i].name) == 0) {
      g_steps[i].run(folder);
      printf("%s done\n", g_steps[i].name);
      fflush(stdout);
    }
  }
  return 0;
}
