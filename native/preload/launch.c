/* Wraps the functions that start programs.
 * They may run in a child of vfork, which shares its parent's memory, so their data is on the
 * stack, or in a mapping if the stack may be small. */
#define _GNU_SOURCE
#include <alloca.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/osrt/observe.h"
#include "program.h"
#include "stub.h"
#include "system.h"

enum { LONGEST_PATH = 1024, MOST_ON_STACK = 8192 };

enum How { PATH, SEARCH, FILE_NUMBER, AT, SPAWN, SPAWN_SEARCH };

struct Launch {
  enum How how;
  const char *path;
  char *const *arguments;
  char *const *variables;
  int file; /* or directory */
  int flags;
  pid_t *child;
  const posix_spawn_file_actions_t *actions;
  const posix_spawnattr_t *attributes;
};

static int fail(long error) {
  if (error < 0) {
    errno = (int)-error;
    return -1;
  }
  return (int)error;
}

static int spawn_now(const struct Launch *launch, char *const *variables) {
  int is_search = launch->how == SPAWN_SEARCH;
  __typeof__(next()->posix_spawn) real = is_search ? next()->posix_spawnp : next()->posix_spawn;
  if (real == NULL) {
    return ENOSYS;
  }
  OBSERVE
  int error =
      real(launch->child, launch->path, launch->actions, launch->attributes, launch->arguments, variables);
  OBSERVED(posix_spawn, NUMBER, error, .name = is_search ? "posix_spawnp" : "posix_spawn",
           .text = launch->path)
  return error;
}

/* The program's call, with other variables. */
static int call(const struct Launch *launch, char *const *variables) {
  const struct Next *real = next();
  switch (launch->how) {
    case PATH:
      return real->execve != NULL ? real->execve(launch->path, launch->arguments, variables)
                                  : fail(system_call(SYS_execve, (long)launch->path, (long)launch->arguments,
                                                     (long)variables, 0));
    case SEARCH:
      return real->execvpe != NULL ? real->execvpe(launch->path, launch->arguments, variables)
                                   : fail(-ENOSYS);
    case FILE_NUMBER:
      return real->fexecve != NULL ? real->fexecve(launch->file, launch->arguments, variables)
                                   : fail(-ENOSYS);
    case AT: /* glibc has it since 2.34 */
      return real->execveat != NULL
                 ? real->execveat(launch->file, launch->path, launch->arguments, variables, launch->flags)
                 : (int)syscall(SYS_execveat, launch->file, launch->path, launch->arguments, variables,
                                launch->flags);
    case SPAWN:
    case SPAWN_SEARCH:
      return spawn_now(launch, variables);
  }
  return fail(-ENOSYS);
}

/* Where PATH finds the program that execvp would run: the kind of that program, and in `found` the path that leads to it. */
static int search(const char *name, char *found, size_t size, char *resolved, size_t resolved_size) {
  const char *directories = getenv("PATH");
  directories = directories != NULL ? directories : "/bin:/usr/bin";
  size_t length = strlen(name) + 1;
  for (const char *at = directories;; ++at) {
    size_t part = strcspn(at, ":");
    if (part + 1 + length <= size) {
      memcpy(found, at, part);
      found[part] = '/';
      memcpy(found + part + (part != 0), name, length);
      int kind = examine_program(AT_FDCWD, found, 0, resolved, resolved_size);
      if (kind >= 0) {
        return kind;
      }
    }
    at += part;
    if (*at == '\0') {
      return -ENOENT;
    }
  }
}

static int examine(const struct Launch *launch, char *resolved, size_t size) {
  int kind = -ENOENT;
  switch (launch->how) {
    case PATH:
    case SPAWN:
      return examine_program(AT_FDCWD, launch->path, 0, resolved, size);
    case FILE_NUMBER:
      return examine_program(launch->file, "", AT_EMPTY_PATH, resolved, size);
    case AT:
      return examine_program(launch->file, launch->path, launch->flags, resolved, size);
    case SEARCH:
    case SPAWN_SEARCH:
      if (launch->path == NULL || launch->path[0] == '\0') {
        return -ENOENT;
      }
      if (strchr(launch->path, '/') != NULL) {
        kind = examine_program(AT_FDCWD, launch->path, 0, resolved, size);
      } else {
        char found[LONGEST_PATH];
        kind = search(launch->path, found, sizeof(found), resolved, size);
      }
  }
  /* execvp gives to the shell what the kernel does not take. */
  if (kind == WARPLENS_FOREIGN_UNKNOWN && launch->how == SEARCH) {
    kind = examine_program(AT_FDCWD, "/bin/sh", 0, resolved, size);
  }
  return kind;
}

static unsigned wishes_by_kind(int kind) {
  switch (kind) {
    case WARPLENS_FOREIGN_NONE:
      return ADD_STUB | PUT_BACK;
    case WARPLENS_FOREIGN_CLASS:
    case WARPLENS_FOREIGN_LIBC:
      return TAKE_STUB | TAKE_AGENT;
    case WARPLENS_FOREIGN_SETUID:
      return TAKE_STUB;
    case WARPLENS_FOREIGN_UNREACHABLE:
      return TAKE_STUB | TAKE_AGENT;
    default:
      return TAKE_STUB | PUT_BACK;
  }
}

static unsigned wishes_for(int kind) {
  unsigned wishes = wishes_by_kind(kind);
  return g_stub.registered ? wishes : wishes & (TAKE_STUB | TAKE_AGENT);
}

static int start(const struct Launch *launch) {
  int is_spawn = launch->how == SPAWN || launch->how == SPAWN_SEARCH;
  char resolved[LONGEST_PATH] = "";
  uint64_t begin = clock_now();
  int kind = examine(launch, resolved, sizeof(resolved));
  int is_there = kind >= 0;
  /* What is not there will not run; or a spawn looks for it elsewhere. */
  kind = is_there ? kind : WARPLENS_FOREIGN_NONE;
  if (kind != WARPLENS_FOREIGN_CLASS && kind != WARPLENS_FOREIGN_LIBC && !can_be_loaded()) {
    kind = WARPLENS_FOREIGN_UNREACHABLE;
  }
  struct Variables variables;
  survey(&variables, launch->variables, wishes_for(kind));
  char *const *given = launch->variables;
  void *mapped = MAP_FAILED;
  if (variables.wishes != 0) {
    void *room = NULL;
    if (variables.room <= MOST_ON_STACK) {
      room = alloca(variables.room);
    } else {
      mapped = mmap(NULL, variables.room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      room = mapped != MAP_FAILED ? mapped : NULL;
    }
    given = room != NULL ? arrange(&variables, room) : given;
  }
  const char *name = resolved[0] != '\0' || launch->path == NULL ? resolved : launch->path;
  int is_noted = is_there && g_stub.registered;
  if (is_noted && !is_spawn) {
    append_own(kind == WARPLENS_FOREIGN_NONE ? WARPLENS_PROCESS_EXEC : WARPLENS_PROCESS_FOREIGN, kind, name,
               launch->arguments);
  }
  int result = call(launch, given);
  if (is_noted && !is_spawn) {
    append_own(WARPLENS_PROCESS_EXEC, errno, NULL, NULL);
  } else if (!is_there && !is_spawn && g_stub.registered && launch->path != NULL) {
    remember_failed(launch->path, launch->arguments, errno);
  } else if (is_spawn && result != 0 && g_stub.registered && launch->path != NULL) {
    append(WARPLENS_PROCESS_NOT_SPAWNED, 0, (int32_t)system_call(SYS_getpid, 0, 0, 0, 0), result, begin, name,
           launch->arguments);
  } else if (is_noted && result == 0 && kind != WARPLENS_FOREIGN_NONE) {
    append(WARPLENS_PROCESS_FOREIGN, *launch->child, (int32_t)system_call(SYS_getpid, 0, 0, 0, 0), kind,
           begin, name, launch->arguments);
  }
  if (mapped != MAP_FAILED) {
    int saved = errno;
    munmap(mapped, variables.room);
    errno = saved;
  }
  return result;
}

static int launch(const struct Launch *wanted) {
  return is_active() ? start(wanted) : call(wanted, wanted->variables);
}

WRAPPER int execve(const char *path, char *const arguments[], char *const variables[]) {
  return launch(&(struct Launch){.how = PATH, .path = path, .arguments = arguments, .variables = variables});
}

WRAPPER int execv(const char *path, char *const arguments[]) {
  return launch(&(struct Launch){.how = PATH, .path = path, .arguments = arguments, .variables = environ});
}

WRAPPER int execvp(const char *name, char *const arguments[]) {
  return launch(&(struct Launch){.how = SEARCH, .path = name, .arguments = arguments, .variables = environ});
}

WRAPPER int execvpe(const char *name, char *const arguments[], char *const variables[]) {
  return launch(
      &(struct Launch){.how = SEARCH, .path = name, .arguments = arguments, .variables = variables});
}

WRAPPER int fexecve(int file, char *const arguments[], char *const variables[]) {
  return launch(
      &(struct Launch){.how = FILE_NUMBER, .file = file, .arguments = arguments, .variables = variables});
}

WRAPPER int execveat(int directory, const char *path, char *const arguments[], char *const variables[],
                     int flags) {
  return launch(&(struct Launch){.how = AT,
                                 .path = path,
                                 .arguments = arguments,
                                 .variables = variables,
                                 .file = directory,
                                 .flags = flags});
}

/* The arguments up to the null pointer, as an array on the caller's stack. */
#define COLLECT(first, list, array)                  \
  const char *volatile head = first;                 \
  size_t count = 0;                                  \
  va_start(list, first);                             \
  for (const char *at = head; at != NULL; ++count) { \
    at = va_arg(list, const char *);                 \
  }                                                  \
  va_end(list);                                      \
  char *array[count + 1];                            \
  va_start(list, first);                             \
  array[0] = (char *)head;                           \
  for (size_t i = 1; i <= count; ++i) {              \
    array[i] = va_arg(list, char *);                 \
  }

WRAPPER int execl(const char *path, const char *first, ...) {
  va_list list;
  COLLECT(first, list, arguments)
  va_end(list);
  return launch(&(struct Launch){.how = PATH, .path = path, .arguments = arguments, .variables = environ});
}

WRAPPER int execlp(const char *name, const char *first, ...) {
  va_list list;
  COLLECT(first, list, arguments)
  va_end(list);
  return launch(&(struct Launch){.how = SEARCH, .path = name, .arguments = arguments, .variables = environ});
}

WRAPPER int execle(const char *path, const char *first, ...) {
  va_list list;
  COLLECT(first, list, arguments)
  char *const *variables = va_arg(list, char *const *);
  va_end(list);
  return launch(&(struct Launch){.how = PATH, .path = path, .arguments = arguments, .variables = variables});
}

static int spawn(enum How how, pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const variables[]) {
  pid_t own = 0;
  return launch(&(struct Launch){.how = how,
                                 .path = path,
                                 .arguments = arguments,
                                 .variables = variables,
                                 .child = child != NULL ? child : &own,
                                 .actions = actions,
                                 .attributes = attributes});
}

WRAPPER int posix_spawn(pid_t *child, const char *path, const posix_spawn_file_actions_t *actions,
                        const posix_spawnattr_t *attributes, char *const arguments[],
                        char *const variables[]) {
  return spawn(SPAWN, child, path, actions, attributes, arguments, variables);
}

WRAPPER int posix_spawnp(pid_t *child, const char *name, const posix_spawn_file_actions_t *actions,
                         const posix_spawnattr_t *attributes, char *const arguments[],
                         char *const variables[]) {
  return spawn(SPAWN_SEARCH, child, name, actions, attributes, arguments, variables);
}
