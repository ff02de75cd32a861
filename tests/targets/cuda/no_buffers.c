/* Preloaded: there is no memory for the buffers of CUPTI. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

void *calloc(size_t count, size_t size) {
  static void *(*next)(size_t, size_t);
  if (count * size == (size_t)256 << 10) return NULL;
  if (next == NULL) {
    static int looking;
    static char early[4096]; /* dlsym asks for memory itself */
    static size_t used;
    if (looking) {
      void *at = early + used;
      used += (count * size + 15) / 16 * 16;
      return at;
    }
    looking = 1;
    next = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
  }
  return next(count, size);
}
