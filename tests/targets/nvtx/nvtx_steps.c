// Does what the lines of its standard input say, one NVTX call each, and answers each with a line: what the call returned.
//   push|mark DOMAIN a|w|r NAME    pop DOMAIN    start SLOT DOMAIN a|w|r NAME    end SLOT    (DOMAIN "-": the default one)
//   pushp DOMAIN NAME, popp DOMAIN, markp DOMAIN NAME: with a payload of 64 numbers    sample DOMAIN VALUE    acquire DOMAIN
//   deferred DOMAIN NAME BEGIN END: a range of the past, in ns of CLOCK_MONOTONIC    enabled DOMAIN    now    profiler start|stop
//   many COUNT LINE    thread LINE    fork LINE    exit    exec    kill
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <wchar.h>

enum { kDomains = 16, kSlots = 16 };

typedef struct {
  char name[64];
  nvtxDomainHandle_t handle;
  uint64_t counter, deferred;
} Domain;

static Domain domains[kDomains];
static nvtxRangeId_t slots[kSlots];
static double numbers[64];

static Domain *domain(const char *name) {
  for (int i = 0; i < kDomains; ++i) {
    Domain *d = &domains[i];
    if (strcmp(d->name, name) == 0) {
      return d;
    }
    if (d->name[0] == '\0') {
      snprintf(d->name, sizeof(d->name), "%s", name);
      d->handle = strcmp(name, "-") == 0 ? NULL : nvtxDomainCreateA(name);
      return d;
    }
  }
  abort();
}

static nvtxEventAttributes_t event(Domain *d, const char *kind, const char *name) {
  static wchar_t wide[256];
  nvtxEventAttributes_t e = {.version = NVTX_VERSION, .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE};
  if (*kind == 'r') {
    e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    e.message.registered = nvtxDomainRegisterStringA(d->handle, name);
  } else if (*kind == 'w') {
    mbstowcs(wide, name, 256);
    e.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    e.message.unicode = wide;
  } else {
    e.messageType = NVTX_MESSAGE_TYPE_ASCII;
    e.message.ascii = name;
  }
  return e;
}

static void add_payload(nvtxEventAttributes_t *e, nvtxPayloadData_t *payload) {
  *payload = (nvtxPayloadData_t){NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64, sizeof(numbers), numbers};
  e->payloadType = NVTX_PAYLOAD_TYPE_EXT;
  e->reserved0 = 1;
  e->payload.ullValue = (uint64_t)(uintptr_t)payload;
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

typedef struct {
  uint64_t begin, end;
  const char *name;
} Past;

static void deferred(Domain *d, const char *name, uint64_t begin, uint64_t end) {
  if (d->deferred == 0) {
    nvtxPayloadSchemaEntry_t entries[] = {
        {NVTX_PAYLOAD_ENTRY_FLAG_RANGE_BEGIN | NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "begin", NULL, 0, 0, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_RANGE_END | NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "end", NULL, 0, 0, NULL, NULL},
        {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "name", NULL, 0, 0, NULL, NULL},
    };
    nvtxPayloadSchemaAttr_t schema = {
        .fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
                     NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE,
        .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
        .flags = NVTX_PAYLOAD_SCHEMA_FLAG_RANGE_PUSHPOP,
        .entries = entries,
        .numEntries = 3,
        .payloadStaticSize = sizeof(Past)};
    d->deferred = nvtxPayloadSchemaRegister(d->handle, &schema);
  }
  Past past = {begin, end, name};
  nvtxPayloadData_t payload = {d->deferred, sizeof(past), &past};
  nvtxEventSubmit(d->handle, &payload, 1);
}

static void sample(Domain *d, int64_t value) {
  if (d->counter == 0) {
    nvtxCounterAttr_t attributes = {.structSize = sizeof(attributes), .schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64, .name = "counter"};
    d->counter = nvtxCounterRegister(d->handle, &attributes);
  }
  nvtxCounterSampleInt64(d->handle, d->counter, value);
}

static int profiler(const char *what) {
  void *agent = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_NOW | RTLD_NOLOAD);
  char name[64];
  snprintf(name, sizeof(name), "warplens_profiler_%.16s", what);
  int (*function)(void) = agent == NULL ? NULL : (int (*)(void))dlsym(agent, name);
  return function == NULL ? -1 : function();
}

static long long obey(char *line);

static void *obey_in_thread(void *line) { return (void *)(intptr_t)obey(line); }

static long long obey(char *line) {
  char word[16], place[64] = "", kind[4] = "", name[128] = "";
  int used = 0, slot = 0;
  unsigned long long first = 0, second = 0;
  nvtxPayloadData_t payload;
  nvtxEventAttributes_t e;
  if (sscanf(line, "%15s %n", word, &used) < 1) {
    return -100;
  }
  char *rest = line + used;
  if (strcmp(word, "push") == 0 || strcmp(word, "mark") == 0) {
    sscanf(rest, "%63s %3s %127s", place, kind, name);
    Domain *d = domain(place);
    e = event(d, kind, name);
    if (word[0] == 'p') {
      return nvtxDomainRangePushEx(d->handle, &e);
    }
    nvtxDomainMarkEx(d->handle, &e);
    return 0;
  }
  if (strcmp(word, "pushp") == 0 || strcmp(word, "markp") == 0) {
    sscanf(rest, "%63s %127s", place, name);
    Domain *d = domain(place);
    e = event(d, "a", name);
    add_payload(&e, &payload);
    if (word[0] == 'p') {
      return nvtxDomainRangePushEx(d->handle, &e);
    }
    nvtxDomainMarkEx(d->handle, &e);
    return 0;
  }
  if (strcmp(word, "pop") == 0) {
    sscanf(rest, "%63s", place);
    return nvtxDomainRangePop(domain(place)->handle);
  }
  if (strcmp(word, "popp") == 0) {
    sscanf(rest, "%63s", place);
    payload = (nvtxPayloadData_t){NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64, sizeof(numbers), numbers};
    return nvtxRangePopPayload(domain(place)->handle, &payload, 1);
  }
  if (strcmp(word, "start") == 0) {
    sscanf(rest, "%d %63s %3s %127s", &slot, place, kind, name);
    Domain *d = domain(place);
    e = event(d, kind, name);
    slots[slot] = nvtxDomainRangeStartEx(d->handle, &e);
    return slots[slot] != 0;
  }
  if (strcmp(word, "end") == 0) {
    sscanf(rest, "%d", &slot);
    nvtxRangeEnd(slots[slot]);
    return 0;
  }
  if (strcmp(word, "sample") == 0) {
    sscanf(rest, "%63s %llu", place, &first);
    sample(domain(place), (int64_t)first);
    return 0;
  }
  if (strcmp(word, "acquire") == 0) {
    sscanf(rest, "%63s", place);
    nvtxSyncUserAttributes_t attributes = {.version = NVTX_VERSION, .size = NVTX_SYNCUSER_ATTRIB_STRUCT_SIZE};
    nvtxSyncUser_t object = nvtxDomainSyncUserCreate(domain(place)->handle, &attributes);
    nvtxDomainSyncUserAcquireStart(object);
    return 0;
  }
  if (strcmp(word, "deferred") == 0) {
    sscanf(rest, "%63s %127s %llu %llu", place, name, &first, &second);
    deferred(domain(place), name, first, second);
    return 0;
  }
  if (strcmp(word, "enabled") == 0) {
    sscanf(rest, "%63s", place);
    return nvtxDomainIsEnabled(domain(place)->handle);
  }
  if (strcmp(word, "now") == 0) {
    return (long long)now();
  }
  if (strcmp(word, "profiler") == 0) {
    sscanf(rest, "%63s", place);
    return profiler(place);
  }
  if (strcmp(word, "many") == 0) {
    sscanf(rest, "%llu %n", &first, &used);
    long long result = 0;
    while (first-- > 0) {
      for (char *at = rest + used, *next; *at != '\0'; at = next) {  // steps with ';' between them
        char step[256];
        next = strchrnul(at, ';');
        snprintf(step, sizeof(step), "%.*s", (int)(next - at), at);
        next += *next == ';';
        result = obey(step);
      }
    }
    return result;
  }
  if (strcmp(word, "thread") == 0) {
    pthread_t thread;
    void *result = NULL;
    pthread_create(&thread, NULL, obey_in_thread, rest);
    pthread_join(thread, &result);
    return (intptr_t)result;
  }
  if (strcmp(word, "fork") == 0) {
    pid_t child = fork();
    if (child == 0) {
      obey(rest);
      exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return status;
  }
  if (strcmp(word, "exit") == 0) {
    exit(0);
  }
  if (strcmp(word, "exec") == 0) {
    puts("0");
    fflush(stdout);
    execl("/proc/self/exe", "again", NULL);
  }
  if (strcmp(word, "kill") == 0) {
    kill(getpid(), SIGKILL);
  }
  return -100;
}

int main(void) {
  char line[512];
  nvtxInitialize(NULL);
  while (fgets(line, sizeof(line), stdin) != NULL) {
    line[strcspn(line, "\n")] = '\0';
    printf("%lld\n", obey(line));
    fflush(stdout);
  }
  return 0;
}
