/* Appends to the register of processes. The file is opened for each record: the program may close every file that it finds, and
 * must not find one of ours. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>

#include "stub.h"
#include "system.h"

/* A writev takes 1024 pieces. Where programs start others, the stack may be small. */
enum { MOST_ARGUMENTS = 1000, MOST_BEFORE = 250 };

uint64_t clock_now(void) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Where the program may not write files of any size, writing would not fail but send it a signal. */
static void write_without_signal(int file, const struct iovec *parts, int count) {
  uint64_t size_signal = 1ull << (SIGXFSZ - 1);
  uint64_t before = 0;
  uint64_t pending = 0;
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&size_signal, (long)&before, sizeof(before));
  system_call(SYS_rt_sigpending, (long)&pending, sizeof(pending), 0, 0);
  long error = system_call(SYS_writev, file, (long)parts, count, 0);
  if (error == -EFBIG && (pending & size_signal) == 0) {
    struct timespec none = {0, 0};
    system_call(SYS_rt_sigtimedwait, (long)&size_signal, 0, (long)&none, sizeof(size_signal));
  }
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&before, 0, sizeof(before));
}

static uint64_t nanoseconds(struct timeval time) {
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_usec * 1000u;
}

/* The most resident memory of this program, bytes: the kernel's record of a process also counts the programs that it was before. */
static uint64_t peak_of_program(void) {
  static const char label[] = "\nVmHWM:";
  char text[1024];
  int file = (int)system_open(AT_FDCWD, "/proc/self/status", O_RDONLY | O_CLOEXEC);
  long got = file < 0 ? 0 : system_pread(file, text, sizeof(text) - 1, 0);
  if (file >= 0) {
    system_close(file);
  }
  text[got > 0 ? got : 0] = '\0';
  const char *at = strstr(text, label);
  uint64_t kilobytes = 0;
  for (at = at != NULL ? at + sizeof(label) - 1 : ""; *at == ' ' || *at == '\t'; ++at) {
  }
  for (; *at >= '0' && *at <= '9'; ++at) {
    kilobytes = kilobytes * 10 + (uint64_t)(*at - '0');
  }
  return kilobytes * 1024;
}

static int usage_of(struct WarplensUsage *out) {
  struct rusage used;
  if (system_call(SYS_getrusage, RUSAGE_SELF, (long)&used, 0, 0) != 0) {
    return 0;
  }
  *out =
      (struct WarplensUsage){peak_of_program(),        nanoseconds(used.ru_utime), nanoseconds(used.ru_stime),
                             (uint64_t)used.ru_minflt, (uint64_t)used.ru_majflt,   (uint64_t)used.ru_nvcsw,
                             (uint64_t)used.ru_nivcsw};
  return 1;
}

static int write_parts(const struct iovec *parts, int count) {
  int file = (int)system_open(AT_FDCWD, g_stub.log, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW);
  if (file < 0) {
    return 0;
  }
  struct rlimit limit;
  if (system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, (long)&limit) == 0 && limit.rlim_cur == RLIM_INFINITY) {
    system_call(SYS_writev, file, (long)parts, count, 0);
  } else {
    write_without_signal(file, parts, count);
  }
  system_close(file);
  return 1;
}

int append(uint32_t kind, int32_t pid, int32_t ppid, int32_t status, uint64_t time_ns, const char *executable,
           char *const *arguments) {
  static const char zeros[8];
  struct WarplensProcessRecord record = {
      WARPLENS_REGISTRY_MAGIC, 0, kind, pid,   ppid, status, time_ns, g_stub.rank,
      g_stub.local_rank,       0, 0,    {0, 0}};
  unsigned count = 0;
  const unsigned most = kind == WARPLENS_PROCESS_PROGRAM ? MOST_ARGUMENTS : MOST_BEFORE;
  while (arguments != NULL && count < most && arguments[count] != NULL) {
    ++count;
  }
  struct iovec parts[count + 4];
  unsigned used = 0;
  size_t size = sizeof(record);
  parts[used++] = (struct iovec){&record, sizeof(record)};
  for (unsigned i = 0; executable != NULL && i <= count; ++i) {
    const char *text = i == 0 ? executable : arguments[i - 1];
    size_t length = strlen(text) + 1;
    if (length > WARPLENS_REGISTRY_MOST - 8 - size) {
      record.flags = WARPLENS_PROCESS_CUT;
      break;
    }
    parts[used++] = (struct iovec){(void *)text, length};
    size += length;
    ++record.texts;
  }
  if (count == most && arguments[count] != NULL) {
    record.flags = WARPLENS_PROCESS_CUT;
  }
  record.size = (uint32_t)((size + 7) & ~(size_t)7);
  parts[used++] = (struct iovec){(void *)zeros, record.size - size};
  struct WarplensUsage usage;
  if (kind == WARPLENS_PROCESS_EXIT && usage_of(&usage)) {
    record.flags |= WARPLENS_PROCESS_USED;
    record.size += sizeof(usage);
    parts[used++] = (struct iovec){&usage, sizeof(usage)};
  }
  return write_parts(parts, (int)used);
}

int append_own(uint32_t kind, int32_t status, const char *executable, char *const *arguments) {
  return append(kind, (int32_t)system_call(SYS_getpid, 0, 0, 0, 0),
                (int32_t)system_call(SYS_getppid, 0, 0, 0, 0), status, clock_now(), executable, arguments);
}
