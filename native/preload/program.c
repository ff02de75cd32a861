/* Reads the head of a program as the kernel and the dynamic loader will. In the stub and, for the launcher, in the agent. */
#define _GNU_SOURCE
#include "program.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>

#include "system.h"
#include "warplens/registry.h"
#include "warplens/warplens.h"

#if defined __x86_64__
#define OUR_MACHINE EM_X86_64
#elif defined __aarch64__
#define OUR_MACHINE EM_AARCH64
#else
#define OUR_MACHINE EM_NONE
#endif
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_ORDER ELFDATA2LSB
#else
#define OUR_ORDER ELFDATA2MSB
#endif
#define OUR_CLASS (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)

enum { HEAD = 1024, LONGEST_LINE = 256, MOST_SCRIPTS = 5, MOST_PARTS = 128, MOST_NEEDED = 4096 };

struct Image {
  int file;
  size_t size;
  char head[HEAD]; /* holds all that is asked of most programs but the names of their libraries */
};

static int read_at(const struct Image *image, uint64_t at, void *out, size_t size) {
  if (at <= image->size && size <= image->size - at) {
    memcpy(out, image->head + at, size);
    return 1;
  }
  return system_pread(image->file, out, size, (off_t)at) == (long)size;
}

/* A text of at most size - 1 bytes; empty where there is none. */
static void read_text(const struct Image *image, uint64_t at, char *out, size_t size) {
  long got = system_pread(image->file, out, size - 1, (off_t)at);
  out[got > 0 ? got : 0] = '\0';
}

static int starts_with(const char *text, const char *prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

static int read_part(const struct Image *image, const ElfW(Ehdr) * head, unsigned number, ElfW(Phdr) * out) {
  return read_at(image, head->e_phoff + (uint64_t)number * sizeof(*out), out, sizeof(*out));
}

/* The place in the file of what will be at `address`. */
static uint64_t place_of(const struct Image *image, const ElfW(Ehdr) * head, uint64_t address) {
  ElfW(Phdr) part;
  for (unsigned i = 0; i < head->e_phnum && read_part(image, head, i, &part); ++i) {
    if (part.p_type == PT_LOAD && address - part.p_vaddr < part.p_filesz) {
      return part.p_offset + (address - part.p_vaddr);
    }
  }
  return 0;
}

static int insists_on_being_first(const char *library) {
  static const char kinds[][8] = {"asan", "hwasan", "lsan", "tsan", "msan"};
  library += starts_with(library, "libclang_rt.") ? 12 : starts_with(library, "lib") ? 3 : 0;
  for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
    size_t length = strlen(kinds[i]);
    if (starts_with(library, kinds[i]) && strchr(".-_", library[length]) != NULL) {
      return 1;
    }
  }
  return 0;
}

static int is_sanitized(const struct Image *image, const ElfW(Ehdr) * head, const ElfW(Phdr) * dynamic) {
  ElfW(Dyn) entries[16];
  uint64_t names = 0;
  /* Twice: where the names are stands behind the list of them. */
  for (int pass = 0; pass < 2; ++pass) {
    for (unsigned i = 0; i < MOST_NEEDED && i < dynamic->p_filesz / sizeof(entries[0]); ++i) {
      unsigned slot = i % 16;
      if (slot == 0) {
        memset(entries, 0, sizeof(entries));
        size_t rest = dynamic->p_filesz - i * sizeof(entries[0]);
        size_t size = rest < sizeof(entries) ? rest : sizeof(entries);
        if (!read_at(image, dynamic->p_offset + i * sizeof(entries[0]), entries, size)) {
          return 0;
        }
      }
      if (entries[slot].d_tag == DT_NULL) {
        break;
      }
      if (pass == 0 && entries[slot].d_tag == DT_STRTAB) {
        names = place_of(image, head, entries[slot].d_un.d_ptr);
        break;
      }
      if (pass == 1 && entries[slot].d_tag == DT_NEEDED) {
        char name[32];
        read_text(image, names + entries[slot].d_un.d_val, name, sizeof(name));
        if (insists_on_being_first(name)) {
          return 1;
        }
      }
    }
    if (names == 0) {
      break;
    }
  }
  return 0;
}

static int is_our_loader(const char *interpreter) {
  const char *name = strrchr(interpreter, '/');
  name = name != NULL ? name + 1 : interpreter;
  return starts_with(name, "ld-linux-") || starts_with(name, "ld-lsb-");
}

/* An emulator of another machine hands its variables on to the program that it runs, whose loader then complains of us. */
static int is_emulator(const char *path) {
  static const char machines[][8] = {"aarch64", "alpha", "arm",   "hexagon", "hppa",  "i386",
                                     "loong",   "m68k",  "micro", "mips",    "nios2", "or1k",
                                     "ppc",     "riscv", "s390",  "sh4",     "sparc", "xtensa"};
  const char *name = strrchr(path, '/');
  name = name != NULL ? name + 1 : path;
  for (unsigned i = 0; starts_with(name, "qemu-") && i < sizeof(machines) / sizeof(machines[0]); ++i) {
    size_t length = strnlen(machines[i], sizeof(machines[i]));
    if (strncmp(name + 5, machines[i], length) == 0) {
      return 1;
    }
  }
  return 0;
}

static int examine_elf(const struct Image *image) {
  ElfW(Ehdr) head;
  memcpy(&head, image->head, sizeof(head));
  if (head.e_ident[EI_CLASS] != OUR_CLASS || head.e_ident[EI_DATA] != OUR_ORDER ||
      head.e_machine != OUR_MACHINE) {
    return WARPLENS_FOREIGN_CLASS;
  }
  if ((head.e_type != ET_EXEC && head.e_type != ET_DYN) || head.e_phentsize != sizeof(ElfW(Phdr)) ||
      head.e_phnum > MOST_PARTS) {
    return WARPLENS_FOREIGN_UNKNOWN;
  }
  char interpreter[LONGEST_LINE] = "";
  ElfW(Phdr) dynamic = {0};
  ElfW(Phdr) part;
  for (unsigned i = 0; i < head.e_phnum; ++i) {
    if (!read_part(image, &head, i, &part)) {
      return WARPLENS_FOREIGN_UNKNOWN;
    }
    if (part.p_type == PT_INTERP) {
      size_t size = part.p_filesz < sizeof(interpreter) ? part.p_filesz : sizeof(interpreter) - 1;
      if (!read_at(image, part.p_offset, interpreter, size)) {
        return WARPLENS_FOREIGN_UNKNOWN;
      }
      interpreter[size] = '\0';
    } else if (part.p_type == PT_DYNAMIC) {
      dynamic = part;
    }
  }
  if (interpreter[0] == '\0') {
    return WARPLENS_FOREIGN_STATIC;
  }
  if (!is_our_loader(interpreter)) {
    return WARPLENS_FOREIGN_LIBC;
  }
  return is_sanitized(image, &head, &dynamic) ? WARPLENS_FOREIGN_SANITIZED : WARPLENS_FOREIGN_NONE;
}

/* Will the kernel tell the loader not to trust the environment? */
static int gains_rights(const struct stat *facts, int file) {
  uid_t user = (uid_t)system_call(SYS_getuid, 0, 0, 0, 0);
  gid_t group = (gid_t)system_call(SYS_getgid, 0, 0, 0, 0);
  uid_t next_user = facts->st_mode & S_ISUID ? facts->st_uid : (uid_t)system_call(SYS_geteuid, 0, 0, 0, 0);
  gid_t next_group = (facts->st_mode & S_ISGID) != 0 && (facts->st_mode & S_IXGRP) != 0
                         ? facts->st_gid
                         : (gid_t)system_call(SYS_getegid, 0, 0, 0, 0);
  if (next_user != user || next_group != group) {
    return 1;
  }
  return user != 0 && file >= 0 && system_call(SYS_fgetxattr, file, (long)"security.capability", 0, 0) > 0;
}

/* The interpreter of a script: the first word behind "#!". Returns 0 where there is none. */
static int read_interpreter(const struct Image *image, char *out) {
  size_t end = image->size < LONGEST_LINE ? image->size : LONGEST_LINE;
  size_t at = 2;
  while (at < end && (image->head[at] == ' ' || image->head[at] == '\t')) {
    ++at;
  }
  size_t length = 0;
  while (at < end && length < LONGEST_LINE - 1 && strchr(" \t\n", image->head[at]) == NULL) {
    out[length++] = image->head[at++];
  }
  out[length] = '\0';
  return length != 0;
}

/* "/proc/self/fd/" and the number. */
static void write_link(int file, char out[32]) {
  char digits[12];
  int count = 0;
  for (int rest = file; count == 0 || rest != 0; rest /= 10) {
    digits[count++] = (char)('0' + rest % 10);
  }
  char *at = stpcpy(out, "/proc/self/fd/");
  while (count > 0) {
    *at++ = digits[--count];
  }
  *at = '\0';
}

static void name_file(int file, const char *path, char *resolved, size_t size) {
  char link[32];
  long got = -1;
  if (file >= 0) {
    write_link(file, link);
    got = system_call(SYS_readlinkat, AT_FDCWD, (long)link, (long)resolved, (long)size);
  }
  if (got > 0 && (size_t)got < size && resolved[0] == '/') {
    resolved[got] = '\0';
    return;
  }
  size_t length = strlen(path);
  memcpy(resolved, path, length < size ? length + 1 : 0);
  resolved[length < size ? length : 0] = '\0';
}

/* The number of the file, to be closed, or a negative errno. */
static int open_program(int directory, const char *path, int flags) {
  char link[32];
  if (path[0] == '\0') { /* AT_EMPTY_PATH: `directory` is the file, perhaps one that cannot be read from */
    write_link(directory, link);
    path = link;
  }
  int no_link = flags & AT_SYMLINK_NOFOLLOW ? O_NOFOLLOW : 0;
  return (int)system_open(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | no_link);
}

int examine_program(int directory, const char *path, int flags, char *resolved, size_t size) {
  struct Image image;
  struct stat facts;
  char interpreter[LONGEST_LINE];
  for (int scripts = 0; scripts < MOST_SCRIPTS; ++scripts) {
    long error = system_call(SYS_newfstatat, directory, (long)path, (long)&facts, flags);
    if (error < 0) {
      return (int)error;
    }
    if (!S_ISREG(facts.st_mode) || (facts.st_mode & 0111) == 0) {
      return -EACCES;
    }
    image.file = open_program(directory, path, flags);
    long got = image.file < 0 ? -1 : system_pread(image.file, image.head, sizeof(image.head), 0);
    image.size = got > 0 ? (size_t)got : 0;
    int is_script =
        image.size > 2 && memcmp(image.head, "#!", 2) == 0 && read_interpreter(&image, interpreter);
    int found = WARPLENS_FOREIGN_UNKNOWN;
    if (!is_script) {
      if (gains_rights(&facts, image.file)) {
        found = WARPLENS_FOREIGN_SETUID;
      } else if (image.size >= sizeof(ElfW(Ehdr)) && memcmp(image.head, ELFMAG, SELFMAG) == 0) {
        found = is_emulator(path) ? WARPLENS_FOREIGN_CLASS : examine_elf(&image);
      }
      if (size != 0) {
        name_file(image.file, path, resolved, size);
      }
    }
    if (image.file >= 0) {
      system_close(image.file);
    }
    if (!is_script) {
      return found;
    }
    path = interpreter;
    directory = AT_FDCWD;
    flags = 0;
  }
  return WARPLENS_FOREIGN_UNKNOWN;
}

/* The stub does not export it (exports.map). */
__attribute__((visibility("default"))) int warplens_examine_program(const char *path) {
  int found = examine_program(AT_FDCWD, path, 0, NULL, 0);
  return found < 0 ? WARPLENS_FOREIGN_UNKNOWN : found;
}
