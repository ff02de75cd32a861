// nvtx_storm THREADS RANGES [deep|wait|names|steady] [FILE]: many ranges from many threads; prints "ready" half way and, with `wait`,
// stays there at the end; `steady` rests now and then. FILE, where it is named, holds a 64-bit count per thread of the "step" ranges
// that it has closed.
#include <fcntl.h>
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long ranges;
static const char *mode = "";
static atomic_int half_way;
static _Atomic long *closed;

static void *worker(void *argument) {
  long id = (long)argument;
  char name[64];
  snprintf(name, sizeof(name), "worker %ld", id);
  nvtxRangePushA(name);
  if (strcmp(mode, "deep") == 0) {
    for (long i = 0; i < ranges; ++i) {
      nvtxRangePushA("deep");
    }
    for (long i = 0; i < ranges; ++i) {
      nvtxRangePop();
    }
  } else {
    for (long i = 0; i < ranges; ++i) {
      if (strcmp(mode, "names") == 0) {
        snprintf(name, sizeof(name), "name %ld of %ld", i, id);
        nvtxRangePushA(name);
      } else {
        nvtxRangePushA("step");
      }
      nvtxRangePop();
      if (closed != NULL) {
        atomic_store_explicit(&closed[id], i + 1, memory_order_relaxed);
      }
      if (i % 256 == 0 && strcmp(mode, "steady") == 0) {
        usleep(500);
      }
      if (i == ranges / 2) {
        atomic_fetch_add(&half_way, 1);
      }
    }
    if (strcmp(mode, "wait") == 0) {
      for (;;) {
        nvtxRangePushA("waiting");
        usleep(1000);
        nvtxRangePop();
      }
    }
  }
  nvtxRangePop();
  return NULL;
}

int main(int count, char **arguments) {
  long threads = count > 1 ? atol(arguments[1]) : 1;
  ranges = count > 2 ? atol(arguments[2]) : 1000;
  mode = count > 3 ? arguments[3] : "";
  if (count > 4) {
    int file = open(arguments[4], O_RDWR | O_CREAT | O_TRUNC, 0600);
    size_t size = (size_t)threads * sizeof(*closed);
    if (file < 0 || ftruncate(file, (off_t)size) != 0 ||
        (closed = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) == MAP_FAILED) {
      perror(arguments[4]);
      return 1;
    }
  }
  nvtxInitialize(NULL);
  pthread_t *all = calloc((size_t)threads, sizeof(*all));
  for (long i = 0; i < threads; ++i) {
    if (pthread_create(&all[i], NULL, worker, (void *)i) != 0) {
      perror("pthread_create");
      return 1;
    }
  }
  if (strcmp(mode, "wait") == 0) {
    while (atomic_load(&half_way) < threads) {
      usleep(1000);
    }
    puts("ready");
    fflush(stdout);
  }
  for (long i = 0; i < threads; ++i) {
    pthread_join(all[i], NULL);
  }
  puts("done");
  free(all);
  return 0;
}
