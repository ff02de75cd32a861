/* Wraps system and popen.
 * They start a shell from within the C library, with the variables of the program itself. If the
 * program cleared them, the shell gets ours back. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "preload/osrt/observe.h"
#include "program.h"
#include "stub.h"

static void put_back(void) {
  struct Variables variables;
  if (!g_stub.registered || !is_active()) {
    return;
  }
  survey(&variables, environ, ADD_STUB | PUT_BACK);
  if ((variables.wishes & (ADD_STUB | PUT_BACK)) == 0 || !can_be_loaded() ||
      examine_program(AT_FDCWD, "/bin/sh", 0, NULL, 0) != WARPLENS_FOREIGN_NONE) {
    return;
  }
  int saved = errno;
  /* For good: other threads may be reading it. */
  void *room = mmap(NULL, variables.room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room != MAP_FAILED) {
    environ = (char **)arrange(&variables, room);
  }
  errno = saved;
}

WRAPPER int system(const char *command) {
  put_back();
  if (next()->system == NULL) {
    errno = ENOSYS;
    return -1;
  }
  OBSERVE
  int status = next()->system(command);
  OBSERVED(system, MINUS, status, .text = command)
  return status;
}

WRAPPER FILE *popen(const char *command, const char *mode) {
  put_back();
  if (next()->popen == NULL) {
    errno = ENOSYS;
    return NULL;
  }
  OBSERVE
  FILE *file = next()->popen(command, mode);
  OBSERVED(popen, POINTER, (intptr_t)file, .text = command)
  return file;
}
