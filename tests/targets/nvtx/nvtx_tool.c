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
    float f;
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

static void put_bytes(const void *from, size_t n) {
  fputc('"', out);
  for (size_t i = 0; from != NULL && i < n; ++i) fprintf(out, "%02x", ((const unsigned char *)from)[i]);
  fputc('"', out);
}

typedef struct {
  uint64_t schema;
  size_t size;
  const void *data;
} payload_data;

static void put_payloads(const payload_data *p, size_t n) {
  fputs(", \"payloads\": [", out);
  for (size_t i = 0; i < n; ++i) {
    fprintf(out, "%s{\"schema\": %llu, \"bytes\": ", i ? ", " : "", (unsigned long long)p[i].schema);
    put_bytes(p[i].data, p[i].size);
    fputc('}', out);
  }
  fputc(']', out);
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
  if (a->payload_type == 4) fprintf(out, ", \"payload\": %u", (uint32_t)a->payload.u);
  if (a->payload_type == 5) fprintf(out, ", \"payload\": %d", (int32_t)a->payload.u);
  if (a->payload_type == 6) fprintf(out, ", \"payload\": %.9g", (double)a->payload.f);
  if (a->payload_type == (int32_t)0xDFBD0009)
    put_payloads((const payload_data *)(uintptr_t)a->payload.u, (size_t)a->reserved);
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

static void name_thread(uint32_t tid, const char *name) {
  if (!out) return;
  begin("name_thread", NULL);
  fprintf(out, ", \"id\": %u, \"name\": ", tid);
  put_hex(name);
  end();
}

/* Resources, synchronisation objects and CUDA's names. */
typedef struct {
  uint16_t version, size;
  int32_t identifier_type;
  uint64_t identifier;
  int32_t message_type;
  const char *message;
} resource_attributes;

typedef struct {
  uint16_t version, size;
  int32_t message_type;
  const char *message;
} sync_attributes;

static uintptr_t next_object = 500;

static void put_message(int32_t type, const char *message) {
  fputs(", \"message\": ", out);
  if (type == 1)
    put_hex(message);
  else if (type == 3)
    put_hex(strings[(uintptr_t)message]);
  else
    fputs("null", out);
}

static void *make_resource(void *domain, const resource_attributes *a) {
  const uintptr_t id = __sync_add_and_fetch(&next_object, 1);
  if (out) {
    begin("resource", domain);
    fprintf(out, ", \"id\": %lu, \"type\": %d, \"identifier\": %llu, \"size\": %u", (unsigned long)id,
            a->identifier_type, (unsigned long long)a->identifier, a->size);
    put_message(a->message_type, a->message);
    end();
  }
  return (void *)id;
}

static void *make_sync(void *domain, const sync_attributes *a) {
  const uintptr_t id = __sync_add_and_fetch(&next_object, 1);
  if (out) {
    begin("sync", domain);
    fprintf(out, ", \"id\": %lu, \"size\": %u", (unsigned long)id, a->size);
    put_message(a->message_type, a->message);
    end();
  }
  return (void *)id;
}

static void object_event(const char *event, void *object) {
  if (!out) return;
  begin(event, NULL);
  fprintf(out, ", \"id\": %lu", (unsigned long)(uintptr_t)object);
  end();
}
#define OBJECT(name)               \
  static void name(void *object) { \
    object_event(#name, object);   \
  }
OBJECT(resource_destroy)
OBJECT(sync_destroy)
OBJECT(acquire_start)
OBJECT(acquire_failed)
OBJECT(acquire_success)
OBJECT(releasing)

static void named(const char *event, uint64_t id, const char *name) {
  if (!out) return;
  begin(event, NULL);
  fprintf(out, ", \"id\": %llu, \"name\": ", (unsigned long long)id);
  put_hex(name);
  end();
}
#define NAMED(what)                                  \
  static void what(void *object, const char *name) { \
    named(#what, (uintptr_t)object, name);           \
  }
static void cu_device(int device, const char *name) {
  named("cu_device", (uint64_t)device, name);
}
static void cuda_device(int device, const char *name) {
  named("cuda_device", (uint64_t)device, name);
}
NAMED(cu_context)
NAMED(cu_stream)
NAMED(cu_event)
NAMED(cuda_stream)
NAMED(cuda_event)

/* The payload and counter extensions. */
typedef struct {
  uint32_t size;
  uint16_t id, version;
  const void *next;
} semantics_head;

typedef struct {
  semantics_head head;
  uint64_t flags;
  const char *unit;
  uint64_t numerator, denominator;
  int64_t limit_type;
  union {
    int64_t i;
    uint64_t u;
    double d;
  } min, max;
} counter_semantics;

typedef struct {
  semantics_head head;
  uint64_t domain;
} time_semantics;

typedef struct {
  uint64_t flags, type;
  const char *name, *description;
  uint64_t array, offset;
  const void *semantics, *reserved;
} schema_entry;

typedef struct {
  uint64_t mask;
  const char *name;
  uint64_t type, flags;
  const schema_entry *entries;
  size_t count, size, align;
  uint64_t id;
  void *extension;
} schema_attributes;

typedef struct {
  const char *name;
  uint64_t value;
  int8_t flag;
} enum_entry;

typedef struct {
  uint64_t mask;
  const char *name;
  const enum_entry *entries;
  size_t count, size;
  uint64_t id;
  void *extension;
} enum_attributes;

typedef struct {
  size_t size;
  const char *path;
  uint64_t parent, id;
} scope_attributes;

typedef struct {
  size_t size;
  uint64_t schema;
  const char *name, *description;
  uint64_t scope;
  const void *semantics;
  uint64_t id;
} counter_attributes;

typedef struct {
  uint64_t counter;
  const void *values;
  size_t values_size;
  uint64_t flags;
  const int64_t *times;
  size_t times_size;
} counter_batch;

static uint64_t next_id = (uint64_t)1 << 32;

static void put_optional(const char *key, const char *text) {
  fprintf(out, ", \"%s\": ", key);
  if (text)
    put_hex(text);
  else
    fputs("null", out);
}

static void put_limit(const char *key, int64_t type, const void *value) {
  if (type == 3)
    fprintf(out, ", \"%s\": %.17g", key, *(const double *)value);
  else
    fprintf(out, ", \"%s\": %lld", key, *(const long long *)value);
}

static void put_semantics(const void *first) {
  fputs(", \"semantics\": [", out);
  for (const semantics_head *h = first; h; h = h->next) {
    if (h != first) fputs(", ", out);
    fprintf(out, "{\"id\": %u, \"version\": %u, \"size\": %u", h->id, h->version, h->size);
    if (h->id == 5) {
      const counter_semantics *c = (const void *)h;
      fprintf(out, ", \"flags\": %llu, \"numerator\": %llu, \"denominator\": %llu, \"limit_type\": %lld",
              (unsigned long long)c->flags, (unsigned long long)c->numerator,
              (unsigned long long)c->denominator, (long long)c->limit_type);
      put_optional("unit", c->unit);
      put_limit("min", c->limit_type, &c->min);
      put_limit("max", c->limit_type, &c->max);
    }
    if (h->id == 2)
      fprintf(out, ", \"time_domain\": %llu", (unsigned long long)((const time_semantics *)h)->domain);
    fputc('}', out);
  }
  fputc(']', out);
}

static uint64_t register_schema(void *domain, const schema_attributes *a) {
  const uint64_t id = __sync_add_and_fetch(&next_id, 1);
  if (!out) return id;
  begin("schema", domain);
  fprintf(out, ", \"id\": %llu, \"type\": %llu, \"flags\": %llu, \"size\": %lld", (unsigned long long)id,
          (unsigned long long)a->type, a->mask & 1 << 3 ? (unsigned long long)a->flags : 0,
          a->mask & 1 << 6 ? (long long)a->size : -1);
  put_optional("name", a->mask & 1 << 1 ? a->name : NULL);
  fputs(", \"entries\": [", out);
  for (size_t i = 0; i < a->count; ++i) {
    const schema_entry *e = &a->entries[i];
    fprintf(out, "%s{\"type\": %llu, \"flags\": %llu, \"array\": %llu, \"offset\": %llu", i ? ", " : "",
            (unsigned long long)e->type, (unsigned long long)e->flags, (unsigned long long)e->array,
            (unsigned long long)e->offset);
    put_optional("name", e->name);
    if (e->semantics) put_semantics(e->semantics);
    fputc('}', out);
  }
  fputc(']', out);
  end();
  return id;
}

static uint64_t register_enum(void *domain, const enum_attributes *a) {
  const uint64_t id = __sync_add_and_fetch(&next_id, 1);
  if (!out) return id;
  begin("enum", domain);
  fprintf(out, ", \"id\": %llu, \"size\": %zu", (unsigned long long)id, a->size);
  put_optional("name", a->name);
  fputs(", \"entries\": [", out);
  for (size_t i = 0; i < a->count; ++i) {
    fprintf(out, "%s{\"value\": %llu", i ? ", " : "", (unsigned long long)a->entries[i].value);
    put_optional("name", a->entries[i].name);
    fputc('}', out);
  }
  fputc(']', out);
  end();
  return id;
}

static uint64_t register_scope(void *domain, const scope_attributes *a) {
  const uint64_t id = __sync_add_and_fetch(&next_id, 1);
  if (!out) return id;
  begin("scope", domain);
  fprintf(out, ", \"id\": %llu, \"parent\": %llu", (unsigned long long)id, (unsigned long long)a->parent);
  put_optional("path", a->path);
  end();
  return id;
}

static uint64_t register_counter(void *domain, const counter_attributes *a) {
  const uint64_t id = __sync_add_and_fetch(&next_id, 1);
  if (!out) return id;
  begin("counter", domain);
  fprintf(out, ", \"id\": %llu, \"schema\": %llu, \"scope\": %llu", (unsigned long long)id,
          (unsigned long long)a->schema, (unsigned long long)a->scope);
  put_optional("name", a->name);
  put_optional("description", a->description);
  put_semantics(a->semantics);
  end();
  return id;
}

static void begin_sample(const char *event, void *domain, uint64_t counter) {
  begin(event, domain);
  fprintf(out, ", \"id\": %llu", (unsigned long long)counter);
}

static void sample_int64(void *domain, uint64_t counter, int64_t value) {
  ++events;
  if (!out) return;
  begin_sample("sample_int64", domain, counter);
  fprintf(out, ", \"value\": %lld", (long long)value);
  end();
}

static void sample_float64(void *domain, uint64_t counter, double value) {
  ++events;
  if (!out) return;
  begin_sample("sample_float64", domain, counter);
  fprintf(out, ", \"value\": %.17g", value);
  end();
}

static void sample(void *domain, uint64_t counter, const void *value, size_t size) {
  ++events;
  if (!out) return;
  begin_sample("sample", domain, counter);
  fputs(", \"value\": ", out);
  put_bytes(value, size);
  end();
}

static void sample_no_value(void *domain, uint64_t counter, uint8_t reason) {
  if (!out) return;
  begin_sample("sample_no_value", domain, counter);
  fprintf(out, ", \"reason\": %u", reason);
  end();
}

static void batch_submit(void *domain, const counter_batch *b) {
  if (!out) return;
  begin_sample("batch", domain, b->counter);
  fputs(", \"value\": ", out);
  put_bytes(b->values, b->values_size);
  fputs(", \"times\": ", out);
  put_bytes(b->times, b->times_size);
  end();
}

static int pop_payload(void *domain, const payload_data *p, size_t n) {
  if (out) {
    begin("pop", domain);
    put_payloads(p, n);
    end();
  }
  return depth[domain_id(domain)] > 0 ? --depth[domain_id(domain)] : -1;
}

static void end_payload(void *domain, uint64_t id, const payload_data *p, size_t n) {
  if (!out) return;
  begin("end", domain);
  fprintf(out, ", \"id\": %llu", (unsigned long long)id);
  put_payloads(p, n);
  end();
}

static uint8_t is_enabled(void *domain) {
  (void)domain;
  return 1;
}

static int64_t timestamp(void) {
  static int64_t now = 1000;
  return __sync_add_and_fetch(&now, 1);
}

typedef struct {
  size_t id, count;
  intptr_t *slots;
} segment;

typedef struct {
  uint16_t version, size, module, compatibility;
  size_t segment_count;
  segment *segments;
} module_info;

/* NVTX_TOOL_PLAIN: a tool that knows no extension. NVTX_TOOL_NO_ENUMS: one that takes no enumerations. */
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(module_info *m) {
  if (getenv("NVTX_TOOL_PLAIN")) return 0;
  intptr_t *slots = m->segments[0].slots;
  if (m->module == 2) {
    slots[0] = (intptr_t)register_schema;
    if (!getenv("NVTX_TOOL_NO_ENUMS")) slots[1] = (intptr_t)register_enum;
    slots[4] = (intptr_t)pop_payload;
    slots[6] = (intptr_t)end_payload;
    slots[7] = (intptr_t)is_enabled;
    slots[8] = (intptr_t)timestamp;
    slots[12] = (intptr_t)register_scope;
  } else if (m->module == 4) {
    slots[0] = (intptr_t)register_counter;
    slots[1] = (intptr_t)sample_int64;
    slots[2] = (intptr_t)sample_float64;
    slots[3] = (intptr_t)sample;
    slots[4] = (intptr_t)sample_no_value;
    slots[5] = (intptr_t)batch_submit;
  } else {
    return 0;
  }
  return 1;
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
  *table[6] = (void *)make_resource;
  *table[7] = (void *)resource_destroy;
  if (c->get_table(1, &table, &size) && size >= 15) *table[14] = (void *)name_thread;
  if (c->get_table(2, &table, &size) && size >= 8) {
    *table[1] = (void *)cu_device;
    *table[3] = (void *)cu_context;
    *table[5] = (void *)cu_stream;
    *table[7] = (void *)cu_event;
  }
  if (c->get_table(4, &table, &size) && size >= 6) {
    *table[1] = (void *)cuda_device;
    *table[3] = (void *)cuda_stream;
    *table[5] = (void *)cuda_event;
  }
  if (c->get_table(6, &table, &size) && size >= 7) {
    *table[1] = (void *)make_sync;
    *table[2] = (void *)sync_destroy;
    *table[3] = (void *)acquire_start;
    *table[4] = (void *)acquire_failed;
    *table[5] = (void *)acquire_success;
    *table[6] = (void *)releasing;
  }
  ++initialised;
  return 1;
}
