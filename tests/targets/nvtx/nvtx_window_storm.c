// nvtx_window_storm THREADS EVENTS LOG [capture]: threads make so many events each while windows of the capture open and close, and
// log what they did with their own clock: six 64-bit numbers per event, {id, kind, two times around its begin, two around its end}.
// The id is the event's payload. kind: 0 push/pop, 1 start/end, perhaps ended by another thread, 2 mark. With `capture` some of the
// ranges have that name.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { kDeepest = 6, kShared = 8 };

typedef struct {
  uint64_t id, kind, begin[2], end[2];
} Event;

typedef struct {
  Event event;
  nvtxRangeId_t range;
} Started;

static long events;
static int with_capture;
static _Atomic(Started *) shared[kShared];

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static nvtxEventAttributes_t attributes(uint64_t id, const char *name) {
  nvtxEventAttributes_t e = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
  e.messageType = NVTX_MESSAGE_TYPE_ASCII;
  e.message.ascii = name;
  e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  e.payload.ullValue = id;
  return e;
}

typedef struct {
  uint64_t number, random, next;
  Event *log;
  Event open[kDeepest + 2];
  int depth;
} Thread;

static uint64_t pick(Thread *self, uint64_t most) {
  self->random = self->random * 6364136223846793005u + 1442695040888963407u;
  return (self->random >> 33) % most;
}

static uint64_t new_id(Thread *self) { return self->number << 32 | ++self->next; }

static void push(Thread *self, const char *name) {
  Event *e = &self->open[self->depth++];
  *e = (Event){.id = new_id(self)};
  nvtxEventAttributes_t a = attributes(e->id, name);
  e->begin[0] = now();
  nvtxRangePushEx(&a);
  e->begin[1] = now();
}

static void pop(Thread *self, long *count) {
  Event *e = &self->open[--self->depth];
  e->end[0] = now();
  nvtxRangePop();
  e->end[1] = now();
  self->log[(*count)++] = *e;
}

static void finish(Started *s, Event *log, long *count) {
  s->event.end[0] = now();
  nvtxRangeEnd(s->range);
  s->event.end[1] = now();
  log[(*count)++] = s->event;
  free(s);
}

static void *work(void *argument) {
  Thread *self = argument;
  long count = 0;
  push(self, "over all");
  while (count < events) {
    uint64_t what = pick(self, 100);
    if (what < 35 && self->depth <= kDeepest) {
      push(self, with_capture && pick(self, 200) == 0 ? "capture" : "range");
    } else if (what < 70 && self->depth > 1) {
      pop(self, &count);
    } else if (what < 80) {
      Event e = {.id = new_id(self), .kind = 2};
      nvtxEventAttributes_t a = attributes(e.id, "mark");
      e.begin[0] = e.end[0] = now();
      nvtxMarkEx(&a);
      e.begin[1] = e.end[1] = now();
      self->log[count++] = e;
    } else if (what < 95) {
      Started *s = malloc(sizeof(*s));
      s->event = (Event){.id = new_id(self), .kind = 1};
      nvtxEventAttributes_t a = attributes(s->event.id, with_capture && pick(self, 200) == 0 ? "capture" : "started");
      s->event.begin[0] = now();
      s->range = nvtxRangeStartEx(&a);
      s->event.begin[1] = now();
      Started *other = atomic_exchange(&shared[pick(self, kShared)], s);
      if (other != NULL) {
        finish(other, self->log, &count);
      }
    } else if (what == 99) {
      usleep((useconds_t)pick(self, 2000));
    }
  }
  while (self->depth > 0) {
    pop(self, &count);
  }
  self->next = (uint64_t)count;
  return NULL;
}

int main(int words, char **word) {
  long threads = words > 1 ? atol(word[1]) : 1;
  events = words > 2 ? atol(word[2]) : 1000;
  FILE *file = words > 3 ? fopen(word[3], "w") : NULL;
  with_capture = words > 4;
  if (file == NULL) {
    return 1;
  }
  nvtxInitialize(NULL);
  pthread_t *all = calloc((size_t)threads, sizeof(*all));
  Thread *each = calloc((size_t)threads, sizeof(*each));
  puts("ready");
  fflush(stdout);
  for (long i = 0; i < threads; ++i) {
    each[i].number = (uint64_t)i + 1;
    each[i].random = (uint64_t)i * 977 + (uint64_t)getpid();
    each[i].log = calloc((size_t)events + kDeepest + 4, sizeof(Event));
    if (pthread_create(&all[i], NULL, work, &each[i]) != 0) {
      return 1;
    }
  }
  for (long i = 0; i < threads; ++i) {
    pthread_join(all[i], NULL);
    fwrite(each[i].log, sizeof(Event), each[i].next, file);
    free(each[i].log);
  }
  Event rest[kShared];
  long count = 0;
  for (int i = 0; i < kShared; ++i) {
    Started *s = atomic_exchange(&shared[i], NULL);
    if (s != NULL) {
      finish(s, rest, &count);
    }
  }
  fwrite(rest, sizeof(Event), (size_t)count, file);
  free(all);
  free(each);
  return fclose(file) == 0 ? 0 : 1;
}
