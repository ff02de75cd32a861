/* Wrappers: mappings, shared memory, message queues and SysV semaphores. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>

#include "osrt.h"

#define DECLARE(type, name, parameters, ...) type name parameters;
OSRT_MEMORY(DECLARE)

OSRT_MEMORY(OS_WRAPPER)

WRAPPER void *mremap(void *at, size_t size, size_t wanted, int flags, ...) {
  va_list list;
  va_start(list, flags);
  void *to = va_arg(list, void *);
  va_end(list);
  OS_CALL(void *, mremap, (at, size, wanted, flags, to), MINUS)
  OS_TELL(mremap, CALL, MINUS, .object = wanted)
  return result;
}

WRAPPER int semctl(int which, int number, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  OS_CALL(int, semctl, (which, number, command, argument), MINUS)
  OS_TELL(semctl, CALL, MINUS)
  return result;
}

WRAPPER mqd_t mq_open(const char *name, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = va_arg(list, mode_t);
  void *attributes = va_arg(list, void *);
  va_end(list);
  OS_CALL(mqd_t, mq_open, (name, flags, mode, attributes), MINUS)
  os_forget(result);
  OS_TELL(mq_open, CALL, MINUS, .fd = result, .text = name)
  return result;
}
