// A program whose own allocator annotates each call, as tracing allocators do. Prints how often the agent asked it for memory
// while recording, and how many calls were annotated.
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void __libc_free(void *);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

static int ready;
static _Thread_local int inside;
static _Atomic long nested, annotated;

static void enter(const char *what, size_t size) {
  if (!ready) {
    return;
  }
  if (inside++ != 0) {
    ++nested;
    return;
  }
  char name[48];
  snprintf(name, sizeof(name), "%s %zu", what, size);
  nvtxRangePushA(name);
  nvtxDomainCreateA(name);
  nvtxRangeEnd(nvtxRangeStartA(name));
  ++annotated;
}

static void leave(void) {
  if (ready && --inside == 0) {
    nvtxRangePop();
  }
}

void *malloc(size_t size) {
  enter("malloc", size);
  void *at = __libc_malloc(size);
  leave();
  return at;
}

void free(void *at) {
  enter("free", 0);
  __libc_free(at);
  leave();
}

void *calloc(size_t count, size_t size) {
  enter("calloc", count * size);
  void *at = __libc_calloc(count, size);
  leave();
  return at;
}

void *realloc(void *old, size_t size) {
  enter("realloc", size);
  void *at = __libc_realloc(old, size);
  leave();
  return at;
}

static void *allocate(void *unused) {
  (void)unused;
  for (size_t i = 1; i < 2000; ++i) {
    void *volatile at = malloc(i);
    free(at);
  }
  return NULL;
}

int main(void) {
  nvtxInitialize(NULL);  // NVTX itself allocates, when it loads the tool
  ready = 1;
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) {
    pthread_create(&threads[i], NULL, allocate, NULL);
  }
  for (int i = 0; i < 3; ++i) {
    pthread_join(threads[i], NULL);
  }
  ready = 0;
  printf("nested %ld annotated %ld\n", (long)nested, (long)annotated);
  return 0;
}
