/* Plays a script of CUDA calls, and writes what it did to the file that TRUTH names (fd 2 without): one word and its numbers a line.
 * cuda_program SCRIPT-WORDS…, each "operation:number:…":
 *   kernel:NAME:NS:STREAM[:TIMES]  h2d|d2h|d2d:BYTES:STREAM  memset:VALUE:BYTES:STREAM  peer:BYTES:STREAM
 *   sync:STREAM  device_sync  event:STREAM  wait_event:STREAM  sync_event  query_event
 *   malloc:BYTES  free  malloc_async:BYTES:STREAM  free_async:STREAM  managed:BYTES  pool  prefetch:DEVICE
 *   graph:KERNELS:NS:STREAM[:TIMES]  start  stop  reset  release:N  device:N  module  push:KIND:ID  pop:KIND
 *   driver (from here on: the driver API)  runtime  thread (the rest in a thread of its own)  sleep:MS  fork (the rest in a child)
 *   name:TEXT (of the thread)  fork_both  exit:CODE  _exit:CODE  quick_exit:CODE  kill:SIGNAL  last_error */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_cuda.h"

enum { STREAMS = 16, WORDS = 8 };

static CUstream streams[STREAMS];
static CUevent event;
static void *memory, *other, *managed;
static int driver_api;
static FILE *out;

static void say(const char *format, ...) {
  va_list words;
  va_start(words, format);
  char line[512];
  int used = snprintf(line, sizeof(line), "%d %d ", (int)getpid(), (int)gettid());
  used += vsnprintf(line + used, sizeof(line) - (size_t)used - 1, format, words);
  va_end(words);
  line[used++] = '\n';
  fwrite(line, 1, (size_t)used, out);
  fflush(out);
}

static void check(int error, const char *what) {
  if (error != 0) say("error %d %s", error, what);
}

static CUstream stream(const char *word) {
  int number = word == NULL ? 0 : atoi(word) % STREAMS;
  if (number != 0 && streams[number] == NULL) {
    check(driver_api ? cuStreamCreate(&streams[number], 1) : cudaStreamCreateWithFlags(&streams[number], 1),
          "stream");
  }
  return streams[number];
}

static CUfunction function(const char *name, const char *ns) {
  char full[300];
  CUfunction found = NULL;
  snprintf(full, sizeof(full), "%s@%s", name, ns);
  check(cuModuleGetFunction(&found, NULL, full), "function");
  return found;
}

static void launch(const char *name, const char *ns, CUstream on) {
  static char symbols[64];
  static char known[64][300];
  char full[300];
  if (driver_api) {
    check(cuLaunchKernel(function(name, ns), 128, 2, 1, 256, 1, 1, 64, on, NULL, NULL), "cuLaunchKernel");
    return;
  }
  snprintf(full, sizeof(full), "%s@%s", name, ns);
  int at = 0;
  while (known[at][0] != 0 && strcmp(known[at], full) != 0) at = (at + 1) % 64;
  if (known[at][0] == 0) {
    strcpy(known[at], full);
    check(cudaFakeRegister(&symbols[at], full), "register");
  }
  dim3 grid = {128, 2, 1}, block = {256, 1, 1};
  check(cudaLaunchKernel(&symbols[at], grid, block, NULL, 64, on), "cudaLaunchKernel");
}

static void copy(const char *kind, size_t bytes, CUstream on) {
  int way = kind[0] == 'h' ? 1 : kind[2] == 'h' || kind[2] == 'H' ? 2 : 3;
  if (strcmp(kind, "d2d") == 0) way = 3;
  if (!driver_api) {
    check(on == NULL ? cudaMemcpy(memory, other, bytes, way) : cudaMemcpyAsync(memory, other, bytes, way, on),
          kind);
  } else if (way == 1) {
    check(cuMemcpyHtoDAsync_v2(0, NULL, bytes, on), kind);
  } else if (way == 2) {
    check(cuMemcpyDtoHAsync_v2(NULL, 0, bytes, on), kind);
  } else {
    check(cuMemcpyDtoDAsync_v2(0, 0, bytes, on), kind);
  }
  say("%s %zu", kind, bytes);
}

static void graph(int kernels, const char *ns, CUstream on, int times) {
  CUgraph made = NULL, clone = NULL;
  CUgraphExec exec = NULL;
  if (driver_api) {
    check(cuStreamBeginCapture_v2(on, 0), "capture");
    for (int number = 0; number < kernels; ++number) launch("graph_kernel", ns, on);
    check(cuStreamEndCapture(on, &made), "end capture");
    check(cuGraphInstantiateWithFlags(&exec, made, 0), "instantiate");
    for (int number = 0; number < times; ++number) check(cuGraphLaunch(exec, on), "cuGraphLaunch");
  } else {
    check(cudaStreamBeginCapture(on, 0), "capture");
    for (int number = 0; number < kernels; ++number) launch("graph_kernel", ns, on);
    check(cudaStreamEndCapture(on, &made), "end capture");
    check(cuGraphClone(&clone, made), "clone");
    check(cudaGraphInstantiate(&exec, clone, 0), "instantiate");
    for (int number = 0; number < times; ++number) check(cudaGraphLaunch(exec, on), "cudaGraphLaunch");
  }
  say("graph %d %s %d", kernels, ns, times);
}

struct Rest {
  char **words;
};

static void play(char **words);

static void *play_rest(void *rest) {
  play(((struct Rest *)rest)->words);
  return NULL;
}

static int one(char **words) {
  char text[512], *part[WORDS] = {0}, *left = text;
  snprintf(text, sizeof(text), "%s", words[0]);
  for (int number = 0; number < WORDS && left != NULL; ++number) part[number] = strsep(&left, ":");
  const char *what = part[0];
  if (strcmp(what, "kernel") == 0) {
    int times = part[4] == NULL ? 1 : atoi(part[4]);
    CUstream on = stream(part[3]);
    for (int number = 0; number < times; ++number) {
      launch(part[1], part[2], on);
    }
    say("kernel %s %s %s %d", part[1], part[2], part[3], times);
  } else if (strcmp(what, "h2d") == 0 || strcmp(what, "d2h") == 0 || strcmp(what, "d2d") == 0) {
    copy(what, strtoul(part[1], NULL, 10), stream(part[2]));
  } else if (strcmp(what, "memset") == 0) {
    size_t bytes = strtoul(part[2], NULL, 10);
    CUstream on = stream(part[3]);
    check(driver_api ? cuMemsetD8Async(0, (unsigned char)atoi(part[1]), bytes, on)
                     : cudaMemsetAsync(memory, atoi(part[1]), bytes, on),
          what);
    say("memset %s %zu", part[1], bytes);
  } else if (strcmp(what, "peer") == 0) {
    check(cudaMemcpyPeerAsync(memory, 1, other, 0, strtoul(part[1], NULL, 10), stream(part[2])), what);
    say("peer %s", part[1]);
  } else if (strcmp(what, "sync") == 0) {
    check(driver_api ? cuStreamSynchronize(stream(part[1])) : cudaStreamSynchronize(stream(part[1])), what);
    say("sync 3");
  } else if (strcmp(what, "device_sync") == 0) {
    check(driver_api ? cuCtxSynchronize() : cudaDeviceSynchronize(), what);
    say("sync 4");
  } else if (strcmp(what, "event") == 0) {
    if (event == NULL) check(cudaEventCreate(&event), what);
    check(driver_api ? cuEventRecord(event, stream(part[1])) : cudaEventRecord(event, stream(part[1])), what);
    say("event");
  } else if (strcmp(what, "wait_event") == 0) {
    check(cudaStreamWaitEvent(stream(part[1]), event, 0), what);
    say("sync 2");
  } else if (strcmp(what, "sync_event") == 0) {
    check(cudaEventSynchronize(event), what);
    say("sync 1");
  } else if (strcmp(what, "query_event") == 0) {
    cudaEventQuery(event);
  } else if (strcmp(what, "malloc") == 0) {
    check(cudaMalloc(&memory, strtoul(part[1], NULL, 10)), what);
    say("alloc %s", part[1]);
  } else if (strcmp(what, "free") == 0) {
    check(cudaFree(memory), what);
    memory = NULL;
    say("free");
  } else if (strcmp(what, "malloc_async") == 0) {
    check(cudaMallocAsync(&other, strtoul(part[1], NULL, 10), stream(part[2])), what);
    say("alloc %s", part[1]);
  } else if (strcmp(what, "free_async") == 0) {
    check(cudaFreeAsync(other, stream(part[1])), what);
    other = NULL;
    say("free");
  } else if (strcmp(what, "managed") == 0) {
    check(cudaMallocManaged(&managed, strtoul(part[1], NULL, 10), 1), what);
    say("alloc %s", part[1]);
  } else if (strcmp(what, "prefetch") == 0) {
    check(cudaMemPrefetchAsync(managed, 1 << 20, atoi(part[1]), NULL), what);
    say("um %s", part[1]);
  } else if (strcmp(what, "pool") == 0) {
    CUmemoryPool pool = NULL;
    cudaSetDevice(0);
    check(cuMemPoolCreate(&pool, NULL), what);
    check(cuMemPoolTrimTo(pool, 4096), what);
    check(cuMemPoolDestroy(pool), what);
    say("pool");
  } else if (strcmp(what, "graph") == 0) {
    graph(atoi(part[1]), part[2], stream(part[3]), part[4] == NULL ? 1 : atoi(part[4]));
  } else if (strcmp(what, "module") == 0) {
    CUmodule module = NULL;
    check(cuModuleLoadData(&module, ""), what);
    check(cuModuleUnload(module), what);
    say("module");
  } else if (strcmp(what, "start") == 0) {
    check(driver_api ? cuProfilerStart() : cudaProfilerStart(), what);
    say("start");
  } else if (strcmp(what, "stop") == 0) {
    check(driver_api ? cuProfilerStop() : cudaProfilerStop(), what);
    say("stop");
  } else if (strcmp(what, "reset") == 0) {
    check(cudaDeviceReset(), what);
    memset(streams, 0, sizeof(streams));
    say("reset");
  } else if (strcmp(what, "release") == 0) {
    check(cuDevicePrimaryCtxRelease_v2(atoi(part[1])), what);
    say("release");
  } else if (strcmp(what, "device") == 0) {
    check(cudaSetDevice(atoi(part[1])), what);
    memset(streams, 0, sizeof(streams));
    say("device %s", part[1]);
  } else if (strcmp(what, "push") == 0) {
    check(cuptiActivityPushExternalCorrelationId((uint32_t)atoi(part[1]), strtoull(part[2], NULL, 10)), what);
    say("push %s %s", part[1], part[2]);
  } else if (strcmp(what, "pop") == 0) {
    uint64_t id;
    check(cuptiActivityPopExternalCorrelationId((uint32_t)atoi(part[1]), &id), what);
  } else if (strcmp(what, "driver") == 0) {
    CUcontext context = NULL;
    driver_api = 1;
    check(cuInit(0), "cuInit");
    check(cuDevicePrimaryCtxRetain(&context, 0), "context");
    check(cuCtxSetCurrent(context), "current");
  } else if (strcmp(what, "runtime") == 0) {
    driver_api = 0;
  } else if (strcmp(what, "last_error") == 0) {
    cudaGetLastError();
  } else if (strcmp(what, "sleep") == 0) {
    usleep((useconds_t)atoi(part[1]) * 1000);
  } else if (strcmp(what, "name") == 0) {
    pthread_setname_np(pthread_self(), part[1]);
  } else if (strcmp(what, "thread") == 0) {
    struct Rest rest = {words + 1};
    pthread_t thread;
    pthread_create(&thread, NULL, play_rest, &rest);
    pthread_join(thread, NULL);
    return 0;
  } else if (strcmp(what, "fork") == 0 || strcmp(what, "fork_both") == 0) {
    pid_t child = fork();
    if (child == 0) {
      play(words + 1);
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    say("child %d", status);
    return strcmp(what, "fork_both") == 0;
  } else if (strcmp(what, "exit") == 0) {
    exit(atoi(part[1]));
  } else if (strcmp(what, "_exit") == 0) {
    _exit(atoi(part[1]));
  } else if (strcmp(what, "quick_exit") == 0) {
    quick_exit(atoi(part[1]));
  } else if (strcmp(what, "kill") == 0) {
    kill(getpid(), atoi(part[1]));
  } else {
    fprintf(stderr, "cuda_program: what is %s?\n", words[0]);
    exit(64);
  }
  return 1;
}

static void play(char **words) {
  while (*words != NULL && one(words)) ++words;
}

int main(int count, char **words) {
  const char *path = getenv("TRUTH");
  (void)count;
  out = path == NULL ? stderr : fopen(path, "a");
  if (out == NULL) return 65;
  play(words + 1);
  return 0;
}
