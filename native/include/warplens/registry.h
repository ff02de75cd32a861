/* The register of processes: "processes.log" in the spool directory, appended to by the stub in every process of the tree. C11.
 * Each record is one write() with O_APPEND; a reader stops at nothing but skips what makes no sense. */
#ifndef WARPLENS_REGISTRY_H
#define WARPLENS_REGISTRY_H

#include <stdint.h>

#define WARPLENS_REGISTRY "processes.log"
#define WARPLENS_REGISTRY_MAGIC 0x43525057u /* "WPRC" in memory order */
#define WARPLENS_REGISTRY_MOST 65536u       /* bytes of one record; longer command lines are cut */

enum WarplensProcessKind {
  WARPLENS_PROCESS_PROGRAM = 1, /* a program began: texts are its executable, then its command line */
  WARPLENS_PROCESS_FORK = 2,    /* a child goes on with its parent's program; no texts */
  /* `pid` is about to become another program: the texts name it. With a `status`, an errno, and no texts: it did not. */
  WARPLENS_PROCESS_EXEC = 3,
  WARPLENS_PROCESS_EXIT = 4,   /* `pid` ends by itself with `status` */
  WARPLENS_PROCESS_WAITED = 5, /* `ppid` collected `pid`, which ended with `status` */
  /* `pid` (0: a child that it starts) is about to run a program without us; `status` is the WarplensForeign, texts as for
   * PROGRAM. In place of an EXEC. */
  WARPLENS_PROCESS_FOREIGN = 6,
  WARPLENS_PROCESS_RUNNING = 7, /* written by the launcher when the recording ends: `pid` still runs */
  /* `ppid` spawned a program that could not be started: texts as for PROGRAM, `status` is the errno, `pid` is 0 */
  WARPLENS_PROCESS_NOT_SPAWNED = 8
};

enum WarplensForeign {
  WARPLENS_FOREIGN_NONE = 0,      /* nothing speaks against us */
  WARPLENS_FOREIGN_CLASS = 1,     /* another word size or machine, e.g. a 32-bit program */
  WARPLENS_FOREIGN_LIBC = 2,      /* another C library, e.g. musl */
  WARPLENS_FOREIGN_STATIC = 3,    /* linked statically */
  WARPLENS_FOREIGN_SETUID = 4,    /* runs with other rights than its caller */
  WARPLENS_FOREIGN_SANITIZED = 5, /* its sanitizer insists on being loaded first */
  WARPLENS_FOREIGN_UNKNOWN = 6,   /* no ELF file that could be read */
  /* our library cannot be opened from there: another root directory, fewer rights */
  WARPLENS_FOREIGN_UNREACHABLE = 7
};

struct WarplensProcessRecord {
  uint32_t magic;
  uint32_t size; /* with the texts, a multiple of 8 */
  uint32_t kind;
  int32_t pid;
  int32_t ppid;
  int32_t status;     /* exit code, or 128 + signal */
  uint64_t time_ns;   /* CLOCK_MONOTONIC */
  int32_t rank;       /* -1 = none */
  int32_t local_rank; /* -1 = none */
  uint32_t texts;     /* NUL-terminated strings behind this record */
  uint32_t flags;     /* WARPLENS_PROCESS_CUT, _USED */
  uint64_t reserved[2];
};

#define WARPLENS_PROCESS_CUT 1u  /* texts were cut */
#define WARPLENS_PROCESS_USED 2u /* instead of texts, a WarplensUsage follows */

/* What a process had used at its end; without its children. */
struct WarplensUsage {
  uint64_t max_rss; /* bytes */
  uint64_t user_ns;
  uint64_t system_ns;
  uint64_t minor_faults;
  uint64_t major_faults;
  uint64_t waits;       /* voluntary switches */
  uint64_t preemptions; /* involuntary ones */
};

#endif
