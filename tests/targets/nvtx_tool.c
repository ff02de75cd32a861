/* A small NVTX tool for tests: writes what it is told, one JSON line per call, to the file NVTX_TOOL_LOG.
 * Without that variable it only counts. It declares NVTX's interface itself, from the published layout, so that it
 * is an oracle apart from the headers our libraries are built with. gcc -shared -fPIC -O2 nvtx_tool.c -o tool.so -lpthread */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  union {
    uint64_t u;
    int64_t i;
    double d;
  } payload;
  int32_t message_type;
  const char *message;
} attributes;

typedef struct {
  size_t struct_size;
  int (*get_table)(int, void ****, unsigned *);
} callbacks;

enum { MAX = 70000 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *out;
static char *domains[256];
static unsigned domain_count;
static char *strings[MAX];
static unsigned string_count;
static unsigned long long next_range = 100;
static unsigned long initialised;
static volatile unsigned long long events;
static __thread int depth[257];

static int domain_id(void *d) {
  return (int)(intptr_t)d;
}

static void put_hex(const char *s) {
  fputc('"', out);
  for (; *s; ++s) fprintf(out, "%02x", (unsigned char)*s);
  fputc('"', out);
}

static void begin(const char *event, void *domain) {
  pthread_mutex_lock(&lock);
  fprintf(out, "{\"event\": \"%s\", \"tid\": %ld, \"domain\": ", event, syscall(SYS_gettid));
  if (domain)
    put_hex(domains[domain_id(domain)]);
  else
    fputs("null", out);
}

static void end(void) {
  fputs("}\n", out);
  fflush(out);
  pthread_mutex_unlock(&lock);
}

static void put_attributes(const attributes *a) {
  fprintf(out,
          ", \"version\": %u, \"size\": %u, \"category\": %u, \"color_type\": %d, \"color\": %u, "
          "\"payload_type\": %d, \"reserved\": %d, \"message_type\": %d",
          a->version, a->size, a->category, a->color_type, a->color, a->payload_type, a->reserved,
          a->message_type);
  if (a->payload_type == 1) fprintf(out, ", \"payload\": %llu", (unsigned long long)a->payload.u);
  if (a->payload_type == 2) fprintf(out, ", \"payload\": %lld", (long long)a->payload.i);
  if (a->payload_type == 3) fprintf(out, ", \"payload\": %.17g", a->payload.d);
  fputs(", \"message\": ", out);
  if (a->message_type == 1)
    put_hex(a->message);
  else if (a->message_type == 3)
    put_hex(strings[(uintptr_t)a->message]);
  else
    fputs("null", out);
}

static int push(void *domain, const attributes *a) {
  ++events;
  if (out) {
    begin("push", domain);
    put_attributes(a);
    end();
  }
  return depth[domain_id(domain)]++;
}

static int pop(void *domain) {
  ++events;
  if (out) {
    begin("pop", domain);
    end();
  }
  return depth[domain_id(domain)] > 0 ? --depth[domain_id(domain)] : -1;
}

static void mark(void *domain, const attributes *a) {
  ++events;
  if (out) {
    begin("mark", domain);
    put_attributes(a);
    end();
  }
}

static uint64_t start(void *domain, const attributes *a) {
  const uint64_t id = __sync_add_and_fetch(&next_range, 1);
  ++events;
  if (out) {
    begin("start", domain);
    put_attributes(a);
    fprintf(out, ", \"id\": %llu", (unsigned long long)id);
    end();
  }
  return id;
}

static void stop(void *domain, uint64_t id) {
  ++events;
  if (out) {
    begin("end", domain);
    fprintf(out, ", \"id\": %llu", (unsigned long long)id);
    end();
  }
}

static void *make_domain(const char *name) {
  unsigned id;
  pthread_mutex_lock(&lock);
  for (id = 1; id <= domain_count && strcmp(domains[id], name) != 0; ++id) {
  }
  if (id > domain_count) {
    domain_count = id;
    domains[id] = strdup(name);
  }
  pthread_mutex_unlock(&lock);
  if (out) {
    begin("domain", (void *)(uintptr_t)id);
    end();
  }
  return (void *)(uintptr_t)id;
}

static void free_domain(void *domain) {
  if (out) {
    begin("domain_destroy", domain);
    end();
  }
}

static void *make_string(void *domain, const char *text) {
  if (string_count + 1 >= MAX) return NULL;
  strings[++string_count] = strdup(text);
  const uintptr_t id = string_count;
  if (out) {
    begin("string", domain);
    fputs(", \"message\": ", out);
    put_hex(text);
    end();
  }
  return (void *)id;
}

static void name_category(void *domain, uint32_t id, const char *name) {
  if (out) {
    begin("category", domain);
    fprintf(out, ", \"id\": %u, \"name\": ", id);
    put_hex(name);
    end();
  }
}

__attribute__((visibility("default"))) unsigned long long nvtx_tool_events(void) {
  return events;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    const void *(*get_export_table)(uint32_t)) {
  const char *path = getenv("NVTX_TOOL_LOG");
  const callbacks *c = get_export_table(1);
  void ***table = NULL;
  unsigned size = 0;
  if (!out && path) out = fopen(path, "a");
  if (!c || !c->get_table(5, &table, &size) || size < 16) return 0;
  *table[1] = (void *)mark;
  *table[2] = (void *)start;
  *table[3] = (void *)stop;
  *table[4] = (void *)push;
  *table[5] = (void *)pop;
  *table[8] = (void *)name_category;
  *table[10] = (void *)make_string;
  *table[12] = (void *)make_domain;
  *table[14] = (void *)free_domain;
  ++initialised;
  return 1;
}
