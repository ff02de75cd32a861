/* Starts and ends processes in every way that C has: tree WAY [PROGRAM…]. What it starts gets no variables, unless a way says so. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static char *none[] = {NULL};
static char *volatile nothing = NULL;
static char **program;

static int status_of(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* In this order. */
#define SAY(first, second)         \
  do {                             \
    int value = (int)(first);      \
    printf("%d %d\n", value, (int)(second)); \
  } while (0)

#define IN_CHILD(...)                \
  do {                               \
    fflush(NULL);                    \
    pid_t child = fork();            \
    if (child == 0) {                \
      __VA_ARGS__;                   \
      _exit(99);                     \
    }                                \
    printf("%d\n", status_of(child)); \
  } while (0)

static void execs(void) {
  char *path = program[0];
  char *name = strrchr(path, '/') + 1;
  IN_CHILD(execve(path, program, none));
  IN_CHILD(environ = none; execv(path, program));
  IN_CHILD(environ = none; execl(path, path, "one", "two", NULL));
  IN_CHILD(execle(path, path, "one", NULL, none));
  IN_CHILD(execvpe(name, program, none));
  IN_CHILD(clearenv(); execvp(path, program));
  IN_CHILD(environ = none; execlp(path, path, NULL));
  IN_CHILD(fexecve(open(path, O_RDONLY | O_CLOEXEC), program, none));
  IN_CHILD(execveat(AT_FDCWD, path, program, none, 0));
  IN_CHILD(execveat(open(path, O_PATH | O_CLOEXEC), "", program, none, AT_EMPTY_PATH));
  IN_CHILD(execve(path, program, NULL));
}

static void failures(void) {
  errno = 0;
  SAY(execve("/nowhere/at/all", program, none), errno);
  SAY(execvp("no-such-program", program), errno);
  SAY(execve("/", program, environ), errno);
  SAY(execve(nothing, program, environ), errno);
  SAY(execvp("", program), errno);
  SAY(execve("/dev/null", program, environ), errno);
  SAY(fexecve(-1, program, none), errno);
  pid_t pid = 0;
  printf("%d\n", posix_spawn(&pid, "/nowhere/at/all", NULL, NULL, program, none));
  printf("%d\n", posix_spawnp(&pid, "no-such-program", NULL, NULL, program, none));
  size_t size = 3 << 20; /* longer than any program may get: found, and refused */
  char *much = malloc(size);
  memset(much, 'x', size);
  much[size - 1] = '\0';
  char *long_arguments[] = {much, NULL};
  SAY(execve(program[0], long_arguments, none), errno);
  errno = 77;
  int status = 0;
  pid = fork();
  if (pid == 0) _exit(0);
  pid_t got = waitpid(pid, &status, 0);
  SAY(got == pid, errno);
}

static void spawns(void) {
  pid_t pid = 0;
  char *name = strrchr(program[0], '/') + 1;
  printf("%d ", posix_spawn(&pid, program[0], NULL, NULL, program, none));
  printf("%d\n", status_of(pid));
  printf("%d ", posix_spawnp(&pid, name, NULL, NULL, program, none));
  printf("%d\n", status_of(pid));
  printf("%d ", posix_spawn((pid_t *)nothing, program[0], NULL, NULL, program, none));
  printf("%d\n", wait(NULL) > 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  printf("%d ", posix_spawn(&pid, program[0], &actions, NULL, program, environ));
  printf("%d\n", status_of(pid));
}

static void vforks(void) {
  pid_t pid = vfork();
  if (pid == 0) {
    execve(program[0], program, none);
    _exit(98);
  }
  printf("%d\n", status_of(pid));
  pid = vfork();
  if (pid == 0) {
    execve("/nowhere/at/all", program, none);
    _exit(97);
  }
  printf("%d\n", status_of(pid));
  pid = vfork();
  if (pid == 0) {
    execve(program[0], program, environ);
    _exit(98);
  }
  printf("%d\n", status_of(pid));
}

static void waits(void) {
  int status = 0;
  struct rusage usage;
  siginfo_t facts;
  pid_t pid = fork();
  if (pid == 0) _exit(1);
  printf("%d\n", wait(NULL) == pid);
  if ((pid = fork()) == 0) raise(SIGKILL);
  SAY(waitpid(pid, &status, WUNTRACED) == pid, status);
  if ((pid = fork()) == 0) exit(3);
  SAY(wait3(&status, 0, &usage) == pid, status);
  if ((pid = fork()) == 0) quick_exit(4);
  SAY(wait4(pid, &status, 0, NULL) == pid, status);
  if ((pid = fork()) == 0) _Exit(5);
  SAY(waitid(P_PID, pid, &facts, WEXITED | WNOWAIT), facts.si_status);
  SAY(waitid(P_PID, pid, &facts, WEXITED), facts.si_status);
  if ((pid = fork()) == 0) raise(SIGTERM);
  printf("%d\n", waitid(P_ALL, 0, NULL, WEXITED));
  if ((pid = fork()) == 0) {
    raise(SIGSTOP);
    _exit(7);
  }
  SAY(waitpid(pid, &status, WUNTRACED) == pid, WIFSTOPPED(status));
  kill(pid, SIGCONT);
  SAY(waitpid(pid, &status, 0) == pid, WEXITSTATUS(status));
  SAY(wait(&status), errno);
  if ((pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) == 0) _exit(8); /* without its library's knowledge */
  SAY(waitpid(pid, &status, 0) == pid, WEXITSTATUS(status));
}

static void *wait_in_thread(void *child) {
  int status = 0;
  waitpid(*(pid_t *)child, &status, 0);
  return NULL;
}

/* A thread that is cancelled while it waits. */
static void cancelled(void) {
  pid_t pid = fork();
  if (pid == 0) {
    pause();
    _exit(0);
  }
  pthread_t thread;
  void *result = NULL;
  pthread_create(&thread, NULL, wait_in_thread, &pid);
  usleep(20000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  kill(pid, SIGKILL);
  SAY(result == PTHREAD_CANCELED, status_of(pid));
}

static void shells(void) {
  fflush(NULL);
  printf("%d\n", system("exit 3"));
  fflush(NULL);
  FILE *pipe = popen("cat; exit 4", "w");
  fputs("piped\n", pipe);
  printf("%d\n", pclose(pipe));
  clearenv();
  fflush(NULL);
  printf("%d\n", system("exit 5"));
}

/* As daemons do: no file is left open, and no file that appears may be the register. */
static void closed(void) {
  int out = fcntl(1, F_DUPFD_CLOEXEC, 200);
  for (int file = 0; file < 200; ++file) close(file);
  int opened = open("/dev/zero", O_RDONLY);
  pid_t pid = fork();
  if (pid == 0) {
    int more = open("/dev/zero", O_RDONLY);
    execve(more == opened + 1 ? program[0] : "/nowhere", program, none);
    _exit(98);
  }
  dprintf(out, "%d %d %d\n", opened, status_of(pid), open("/dev/zero", O_RDONLY) == opened + 1);
}

/* As programs do to rename themselves. */
static void renamed(int count, char **arguments) {
  char *end = environ[0];
  for (char **variable = environ; *variable != NULL; ++variable) end = *variable + strlen(*variable);
  memset(arguments[count - 1], 'z', end - arguments[count - 1]);
  execve("/bin/sh", (char *[]){"sh", "-c", "exit 6", NULL}, none);
}

static void limited(void) {
  struct rlimit limit = {0, 0};
  setrlimit(RLIMIT_FSIZE, &limit);
  pid_t pid = fork();
  if (pid == 0) _exit(2);
  int status = status_of(pid);
  sigset_t pending;
  sigpending(&pending);
  exit(status == 0x200 && !sigismember(&pending, SIGXFSZ) ? 9 : 1);
}

static void *start_on_small_stack(void *result) {
  pid_t pid = fork();
  if (pid == 0) {
    environ = none;
    execvp(program[0], program);
    _exit(98);
  }
  int status = status_of(pid);
  posix_spawn(&pid, program[0], NULL, NULL, program, none);
  *(int *)result = status | status_of(pid);
  return NULL;
}

/* A thread with as little stack as there can be. */
static void small(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  int result = 1;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN);
  if (pthread_create(&thread, &attributes, start_on_small_stack, &result) == 0) pthread_join(thread, NULL);
  printf("%d\n", result);
}

static void *fork_many(void *count) {
  for (int i = 0; i < *(int *)count; ++i) {
    pid_t pid = fork();
    if (pid == 0) _exit(i & 1);
    if (status_of(pid) != (i & 1) << 8) abort();
    pid = vfork();
    if (pid == 0) {
      execve(program[0], program, none);
      _exit(98);
    }
    if (status_of(pid) != 0) abort();
  }
  return NULL;
}

static void storm(void) {
  int count = atoi(program[1]);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, fork_many, &count);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  printf("%d\n", 8 * count);
}

static void many_variables(void) {
  enum { MANY = 9000 };
  char **variables = calloc(MANY + 1, sizeof(*variables));
  for (int i = 0; i < MANY; ++i) {
    char *text = malloc(16);
    snprintf(text, 16, "V%d=%d", i, i);
    variables[i] = text;
  }
  pid_t pid = 0;
  printf("%d ", posix_spawn(&pid, program[0], NULL, NULL, program, variables));
  printf("%d\n", status_of(pid));
  IN_CHILD(execve(program[0], program, variables));
}

static void daemon_twice(void) {
  if (fork() == 0) {
    setsid();
    pid_t parent = getpid();
    if (fork() == 0) {
      while (getppid() == parent) usleep(1000);
      int ready = open(program[0], O_WRONLY | O_CREAT | O_EXCL, 0600);
      close(ready);
      _exit(11);
    }
    _exit(0);
  }
  wait(NULL);
}

int main(int count, char **arguments) {
  const char *way = arguments[1];
  program = arguments + 2;
  setvbuf(stdout, NULL, _IOLBF, 0);
  static const struct {
    const char *name;
    void (*run)(void);
  } ways[] = {{"execs", execs},   {"failures", failures}, {"spawns", spawns},   {"vforks", vforks},
              {"waits", waits},   {"cancelled", cancelled}, {"shells", shells}, {"closed", closed},
              {"limited", limited}, {"storm", storm},     {"many", many_variables}, {"daemon", daemon_twice}, {"small", small}};
  for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); ++i) {
    if (strcmp(way, ways[i].name) == 0) {
      ways[i].run();
      return 0;
    }
  }
  if (strcmp(way, "renamed") == 0) renamed(count, arguments);
  return 1;
}
