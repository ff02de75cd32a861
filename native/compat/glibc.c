/* Lets a library built on a new glibc run on glibc 2.28 (manylinux_2_28): defines, hidden inside our libraries, the names
 * that later versions moved to a new version node or added. Most forward to the old symbol of the same function. The
 * static libstdc++ and libgcc call these names too, so versioning our own references would not be enough. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define BASE "GLIBC_2.2.5"
#elif defined __aarch64__
#define BASE "GLIBC_2.17"
#endif

#define OLD_AS(version, result, name, parameters, arguments)    \
  __asm__(".symver warplens_old_" #name "," #name "@" version); \
  extern result warplens_old_##name parameters;                 \
  result name parameters {                                      \
    return warplens_old_##name arguments;                       \
  }
#define OLD(result, name, parameters, arguments) OLD_AS(BASE, result, name, parameters, arguments)

#if defined BASE && defined __GLIBC__

#if __GLIBC_PREREQ(2, 34) /* libpthread and libdl became part of libc */
OLD(int, pthread_create,
    (pthread_t * thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument),
    (thread, attributes, function, argument))
OLD(int, pthread_attr_setstacksize, (pthread_attr_t * attributes, size_t size), (attributes, size))
OLD(int, pthread_join, (pthread_t thread, void **result), (thread, result))
OLD(int, pthread_detach, (pthread_t thread), (thread))
OLD(int, pthread_once, (pthread_once_t * once, void (*function)(void)), (once, function))
OLD(int, pthread_key_create, (pthread_key_t * key, void (*destroy)(void *)), (key, destroy))
OLD(int, pthread_key_delete, (pthread_key_t key), (key))
OLD(void *, pthread_getspecific, (pthread_key_t key), (key))
OLD(int, pthread_setspecific, (pthread_key_t key, const void *value), (key, value))
OLD(int, pthread_mutex_trylock, (pthread_mutex_t * mutex), (mutex))
OLD(int, pthread_rwlock_rdlock, (pthread_rwlock_t * lock), (lock))
OLD(int, pthread_rwlock_wrlock, (pthread_rwlock_t * lock), (lock))
OLD(int, pthread_rwlock_unlock, (pthread_rwlock_t * lock), (lock))
OLD(int, pthread_kill, (pthread_t thread, int number), (thread, number))
OLD(void *, dlopen, (const char *name, int flags), (name, flags))
OLD(int, dlclose, (void *handle), (handle))
OLD(char *, dlerror, (void), ())
OLD(int, dladdr, (const void *address, Dl_info *info), (address, info))
#if defined __x86_64__
OLD_AS("GLIBC_2.3.3", int, dladdr1, (const void *address, Dl_info *info, void **extra, int flags),
       (address, info, extra, flags))
#else
OLD(int, dladdr1, (const void *address, Dl_info *info, void **extra, int flags),
    (address, info, extra, flags))
#endif
#if defined __x86_64__
OLD_AS("GLIBC_2.12", int, pthread_setname_np, (pthread_t thread, const char *name), (thread, name))
OLD_AS("GLIBC_2.12", int, pthread_getname_np, (pthread_t thread, char *name, size_t size),
       (thread, name, size))
#else
OLD(int, pthread_setname_np, (pthread_t thread, const char *name), (thread, name))
OLD(int, pthread_getname_np, (pthread_t thread, char *name, size_t size), (thread, name, size))
#endif
/* RTLD_NEXT means "behind the caller's library", which is this one either way. */
OLD(void *, dlsym, (void *handle, const char *name), (handle, name))

int __pthread_key_create(pthread_key_t *key, void (*destroy)(void *));
int __pthread_key_create(pthread_key_t *key, void (*destroy)(void *)) {
  return pthread_key_create(key, destroy);
}
#endif

#if __GLIBC_PREREQ(2, 33) /* the stat family were inline calls of __xstat before */
int stat(const char *path, struct stat *out) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, 0);
}
int lstat(const char *path, struct stat *out) {
  return (int)syscall(SYS_newfstatat, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
int fstat(int file, struct stat *out) {
  return (int)syscall(SYS_fstat, file, out);
}
int fstatat(int directory, const char *path, struct stat *out, int flags) {
  return (int)syscall(SYS_newfstatat, directory, path, out, flags);
}
#endif

#if __GLIBC_PREREQ(2, 32)
OLD(int, pthread_sigmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old))
/* Says to libstdc++ that it may leave atomics out: never, in a library that lives in someone else's program. */
char __libc_single_threaded = 0;
#endif

#if __GLIBC_PREREQ(2, 30)
pid_t gettid(void) {
  return (pid_t)syscall(SYS_gettid);
}
#endif

#if __GLIBC_PREREQ(2, 38) /* C23's names of functions that read numbers; only binary ones are new */
#define PLAIN(result, name, parameters, arguments)               \
  extern result warplens_plain_##name parameters __asm__(#name); \
  result __isoc23_##name parameters;                             \
  result __isoc23_##name parameters {                            \
    return warplens_plain_##name arguments;                      \
  }
PLAIN(long, strtol, (const char *text, char **end, int base), (text, end, base))
PLAIN(unsigned long, strtoul, (const char *text, char **end, int base), (text, end, base))
PLAIN(long long, strtoll, (const char *text, char **end, int base), (text, end, base))
PLAIN(unsigned long long, strtoull, (const char *text, char **end, int base), (text, end, base))

extern int warplens_vsscanf(const char *text, const char *form, va_list to) __asm__("__isoc99_vsscanf");
int __isoc23_sscanf(const char *text, const char *form, ...);
int __isoc23_sscanf(const char *text, const char *form, ...) {
  va_list to;
  va_start(to, form);
  int count = warplens_vsscanf(text, form, to);
  va_end(to);
  return count;
}
#endif

#if __GLIBC_PREREQ(2, 36)
uint32_t arc4random(void) {
  uint32_t value = 0;
  while (syscall(SYS_getrandom, &value, sizeof value, 0) != (long)sizeof value) {
  }
  return value;
}
#endif

#if __GLIBC_PREREQ(2, 35) /* libgcc's unwinder asks it for the tables of the code at an address */
struct Search {
  uintptr_t address;
  struct dl_find_object *out;
};

static int contains(struct dl_phdr_info *object, size_t size, void *opaque) {
  (void)size;
  struct Search *search = opaque;
  const ElfW(Phdr) *code = NULL;
  const ElfW(Phdr) *tables = NULL;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr) *part = &object->dlpi_phdr[i];
    if (part->p_type == PT_LOAD && search->address - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
      code = part;
    if (part->p_type == PT_GNU_EH_FRAME) tables = part;
  }
  if (code == NULL) return 0;
  if (tables == NULL) return -1;
  memset(search->out, 0, sizeof *search->out);
  search->out->dlfo_map_start = (void *)(object->dlpi_addr + code->p_vaddr);
  search->out->dlfo_map_end = (void *)(object->dlpi_addr + code->p_vaddr + code->p_memsz);
  search->out->dlfo_eh_frame = (void *)(object->dlpi_addr + tables->p_vaddr);
  return 1;
}

int _dl_find_object(void *address, struct dl_find_object *out) {
  struct Search search = {(uintptr_t)address, out};
  return dl_iterate_phdr(contains, &search) == 1 ? 0 : -1;
}
#endif

#endif /* glibc, on a machine whose first version node is known */

/* ISO C wants a file to hold something. */
extern int warplens_compat_is_not_empty;
