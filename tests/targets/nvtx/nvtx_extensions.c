// Every call of NVTX's extensions, through the real headers; the test knows what each line must leave in the spool.
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <nvtx3/nvToolsExtSync.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef NVTX_PAYLOAD_ENTRY_TYPE_RANGE_ID
#define NVTX_PAYLOAD_ENTRY_TYPE_RANGE_ID 67  // not in older headers
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define FIELD(name) NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_##name

static nvtxDomainHandle_t D;

// Semantics as the headers of all versions have them.
typedef struct {
  nvtxSemanticsHeader_t head;
  uint64_t flags;
  const char *unit;
  uint64_t numerator, denominator;
  int64_t limit_type;
  double minimum, maximum;
} CounterSemantics;
typedef struct {
  nvtxSemanticsHeader_t head;
  uint64_t id;
} IdSemantics;

static nvtxEventAttributes_t attributes(const char *message) {
  nvtxEventAttributes_t a;
  memset(&a, 0, sizeof(a));
  a.version = NVTX_VERSION;
  a.size = sizeof(a);
  a.messageType = message != NULL ? NVTX_MESSAGE_TYPE_ASCII : NVTX_MESSAGE_UNKNOWN;
  a.message.ascii = message;
  return a;
}

static nvtxEventAttributes_t with_payloads(const char *message, const nvtxPayloadData_t *payloads,
                                           int count) {
  nvtxEventAttributes_t a = attributes(message);
  a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  a.payload.ullValue = (uint64_t)(uintptr_t)payloads;
  a.reserved0 = count;
  return a;
}

static uint64_t schema(const char *name, uint64_t type, const nvtxPayloadSchemaEntry_t *entries, size_t count,
                       size_t size, uint64_t flags, uint64_t id) {
  nvtxPayloadSchemaAttr_t a;
  memset(&a, 0xee, sizeof(a));  // what the mask does not name may hold anything
  a.fieldMask = FIELD(NAME) | FIELD(TYPE) | FIELD(ENTRIES) | FIELD(NUM_ENTRIES) | FIELD(FLAGS);
  a.name = name;
  a.type = type;
  a.flags = flags;
  a.entries = entries;
  a.numEntries = count;
  if (size != 0) {
    a.fieldMask |= FIELD(STATIC_SIZE);
    a.payloadStaticSize = size;
  }
  if (id != 0) {
    a.fieldMask |= FIELD(SCHEMA_ID);
    a.schemaId = id;
  }
  return nvtxPayloadSchemaRegister(D, &a);
}

static int64_t now(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

typedef struct {
  int32_t rank;
  double loss;
} Step;
static uint64_t step_id;

static void payloads(void) {
  nvtxPayloadSchemaEntry_t entries[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "rank", "who", 0, offsetof(Step, rank), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, "loss", NULL, 0, offsetof(Step, loss), NULL, NULL}};
  step_id = schema("step", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, COUNT(entries), sizeof(Step), 0, 0);
  uint64_t fixed =
      schema("fixed", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, COUNT(entries), 0, 0, (1 << 24) + 5);
  nvtxPayloadEnum_t values[] = {{"red", 1, 0}, {"blue", 2, 1}};
  nvtxPayloadEnumAttr_t colors = {NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                                      NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES |
                                      NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE,
                                  "colors",
                                  values,
                                  2,
                                  4,
                                  0,
                                  NULL};
  uint64_t colors_id = nvtxPayloadEnumRegister(D, &colors);
  if (fixed != (1 << 24) + 5 || step_id < (uint64_t)1 << 32 || colors_id == step_id || colors_id == 0) {
    printf("wrong ids\n");
  }
  Step one = {3, 0.5}, two = {4, 0.25};
  nvtxPayloadData_t data[] = {
      {step_id, sizeof(one), &one}, {fixed, sizeof(two), &two}, {NVTX_TYPE_PAYLOAD_SCHEMA_RAW, 3, "raw"}};
  nvtxEventAttributes_t a = with_payloads("attributes", data, 3);
  nvtxDomainMarkEx(D, &a);
  nvtxDomainRangePushEx(D, &a);
  nvtxDomainRangePop(D);
  nvtxDomainRangeEnd(D, nvtxDomainRangeStartEx(D, &a));
  nvtxMarkPayload(D, data, 1);
  // Payloads of the end, over a payload, a number and nothing.
  a.message.ascii = "extended";
  a.reserved0 = 1;
  nvtxDomainRangePushEx(D, &a);
  nvtxRangePopPayload(D, data + 1, 2);
  a = attributes("number");
  a.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  a.payload.llValue = -1;  // the upper half is no part of it
  a.payload.iValue = 77;
  nvtxDomainRangePushEx(D, &a);
  nvtxRangePopPayload(D, data, 1);
  nvtxDomainRangePushEx(D, &a);
  nvtxRangePopPayload(D, NULL, 0);
  nvtxRangePushPayload(D, data, 2);
  nvtxRangePopPayload(D, data + 2, 1);
  nvtxRangeEndPayload(D, nvtxRangeStartPayload(D, data, 1), data + 1, 1);
  nvtxRangePopPayload(D, data, 1);              // nothing is open
  nvtxRangeEndPayload(D, 0xdeadbeef, data, 1);  // nor is this
}

static void odd_payloads(void) {
  nvtxPayloadData_t none[] = {{step_id, 0, "x"}, {step_id, 8, NULL}};
  nvtxEventAttributes_t a = with_payloads("nothing in it", none, 2);
  nvtxDomainMarkEx(D, &a);
  nvtxPayloadData_t odd[] = {{(uint64_t)1 << 40, 5, "never"},
                             {0, 2, "zero"},
                             {NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, (size_t)-1, "text"},
                             {step_id, 3, "abc"}};
  a = with_payloads("never registered", odd, 4);
  nvtxDomainMarkEx(D, &a);
  a = with_payloads("null array", NULL, 1);
  nvtxDomainMarkEx(D, &a);
  a = with_payloads("count is garbage", odd, 0x7fffffff);
  nvtxDomainMarkEx(D, &a);
  a.message.ascii = "type is garbage";
  a.payloadType = 99;
  nvtxDomainMarkEx(D, &a);
  char *large = calloc(1, (2 << 20) + 10);
  memset(large, 'L', (2 << 20) + 10);
  nvtxPayloadData_t big[] = {{NVTX_TYPE_PAYLOAD_SCHEMA_RAW, (2 << 20) + 10, large},
                             {NVTX_TYPE_PAYLOAD_SCHEMA_RAW, 1 << 20, large}};
  a = with_payloads("large", big, 2);
  nvtxDomainMarkEx(D, &a);
  free(large);
  struct {
    nvtxEventAttributes_t a;
    char more[100];
  } longer;
  memset(&longer, 0x5a, sizeof(longer));
  longer.a = with_payloads("longer structure", odd, 1);
  longer.a.size = sizeof(longer);
  nvtxDomainMarkEx(D, &longer.a);
  a = attributes(NULL);
  a.category = 9;
  a.size = 8;
  a.message.ascii = (const char *)8;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  nvtxDomainMarkEx(D, &a);  // ends behind the category
  a.size = 0;
  nvtxDomainMarkEx(D, &a);
}

// Schemas whose payloads point somewhere, or say something about their event.
static void pointers(void) {
  typedef struct {
    const char *text;
    const int32_t *numbers;
    uint32_t count;
    uint32_t category;
    uint32_t color;
    char inside[8];
    const Step *steps;
    const char *wild;
    const uint16_t *utf16;
    const char *terminated;
  } Rich;
  nvtxPayloadSchemaEntry_t entries[] = {
      {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text", NULL, 0, 0, NULL,
       NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "count", NULL, 0, offsetof(Rich, count), NULL, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX |
           NVTX_PAYLOAD_ENTRY_FLAG_DEEP_COPY,
       NVTX_PAYLOAD_ENTRY_TYPE_INT32, "numbers", NULL, 1, offsetof(Rich, numbers), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY, "category", NULL, 0, offsetof(Rich, category), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_COLOR_ARGB, "color", NULL, 0, offsetof(Rich, color), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "inside", NULL, 8, offsetof(Rich, inside), NULL, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, step_id, "steps", NULL, 2,
       offsetof(Rich, steps), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "wild", NULL, 0, offsetof(Rich, wild), NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF16, "utf16", NULL, 0, offsetof(Rich, utf16), NULL, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_POINTER | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED,
       NVTX_PAYLOAD_ENTRY_TYPE_CHAR, "terminated", NULL, 0, offsetof(Rich, terminated), NULL, NULL}};
  uint64_t rich_id =
      schema("rich", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, entries, COUNT(entries), sizeof(Rich), 0, 0);
  int32_t numbers[] = {10, 20, 30};
  Step steps[] = {{1, 1.5}, {2, 2.5}};
  uint16_t wide[] = {'w', 'i', 'd', 'e', 0};
  // A text that ends exactly where the last readable page does.
  char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(page + 4096, 4096, PROT_NONE);
  strcpy(page + 4096 - 5, "edge");
  Rich rich = {"said by the payload", numbers, 3, 42, 0xff00ff00, "inside", steps, (const char *)16, wide,
               page + 4096 - 5};
  nvtxPayloadData_t data = {rich_id, sizeof(rich), &rich};
  nvtxMarkPayload(D, &data, 1);
  nvtxEventAttributes_t a = attributes("overridden");
  a.category = 1;
  nvtxDomainRangePushEx(D, &a);
  nvtxRangePopPayload(D, &data, 1);
  nvtxRangeId_t id = nvtxDomainRangeStartEx(D, &a);
  rich.text = "by the end";
  nvtxRangeEndPayload(D, id, &data, 1);
  page[4096 - 1] = 'X';  // now it never ends
  rich = (Rich){"torn", NULL, 0xffffffff, 0, 0, "", NULL, NULL, NULL, page + 4096 - 5};
  nvtxMarkPayload(D, &data, 1);
  munmap(page, 8192);

  nvtxPayloadSchemaEntry_t outer[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT64, "before", NULL, 0, 0, NULL, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE, rich_id, "riches", NULL, 2, 0, NULL, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_NVTX_REGISTERED_STRING_HANDLE, "name",
       NULL, 0, 0, NULL, NULL}};
  struct {
    uint64_t before;
    Rich riches[2];
    nvtxStringHandle_t name;
  } nest = {1,
            {{"first", NULL, 0, 0, 0, "", NULL, NULL, NULL, NULL},
             {"second", numbers, 1, 0, 0, "", NULL, NULL, NULL, NULL}},
            nvtxDomainRegisterStringA(D, "registered by payload")};
  uint64_t nest_id = schema("nest", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, outer, COUNT(outer), sizeof(nest), 0, 0);
  nvtxPayloadData_t nested = {nest_id, sizeof(nest), &nest};
  nvtxMarkPayload(D, &nested, 1);

  // A dynamic layout: length, elements, then a text.
  nvtxPayloadSchemaEntry_t dynamic[] = {
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT16, "n", NULL, 0, 0, NULL, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, NVTX_PAYLOAD_ENTRY_TYPE_INT32, "v", NULL, 0, 0, NULL,
       NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED,
       NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "text", NULL, 0, 0, NULL, NULL}};
  uint64_t dynamic_id = schema("dynamic", NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, dynamic, COUNT(dynamic), 0, 0, 0);
  char bytes[] = "\2\0\0\0\1\0\0\0\2\0\0\0behind";
  nvtxPayloadData_t moving = {dynamic_id, sizeof(bytes), bytes};
  nvtxMarkPayload(D, &moving, 1);
  char lies[] = "\xff\xff\0\0\1\0\0\0\2\0\0\0behind";  // more elements than there are bytes
  nvtxPayloadData_t lying = {dynamic_id, sizeof(lies), lies};
  nvtxMarkPayload(D, &lying, 1);

  // A schema that holds itself.
  nvtxPayloadSchemaEntry_t self = {
      NVTX_PAYLOAD_ENTRY_FLAG_POINTER, (1 << 24) + 9, "self", NULL, 0, 0, NULL, NULL};
  uint64_t self_id = schema("self", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, &self, 1, 8, 0, (1 << 24) + 9);
  void *loop = &loop;
  nvtxPayloadData_t looping = {self_id, 8, &loop};
  nvtxMarkPayload(D, &looping, 1);
}

static int64_t own_clock(void) {
  return (now(CLOCK_MONOTONIC) - 1000) / 10;
}

static int64_t own_clock_of(void *data) {
  return now(CLOCK_MONOTONIC) + *(int64_t *)data;
}

static uint64_t counter(const char *name, uint64_t type, const void *semantics, uint64_t scope, uint64_t id) {
  nvtxCounterAttr_t a = {sizeof(a), type, name, "what it counts", scope, semantics, id};
  return nvtxCounterRegister(D, &a);
}

static void counters(void) {
  IdSemantics tool = {{sizeof(tool), 2, 1, NULL}, NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED};
  CounterSemantics semantics = {{sizeof(semantics), 5, 2, &tool.head}, 0x11c, "MB", 1, 1024, 3, 0.5, 99.5};
  nvtxScopeAttr_t scope = {sizeof(scope), "GPU[0]/memory", NVTX_SCOPE_ROOT, 0};
  uint64_t scope_id = nvtxScopeRegister(D, &scope);
  uint64_t i = counter("integer", NVTX_PAYLOAD_ENTRY_TYPE_INT64, &semantics, scope_id, 0);
  uint64_t f = counter("float", NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE, NULL, 0, (1 << 24) + 77);
  uint64_t s = counter("small", NVTX_PAYLOAD_ENTRY_TYPE_INT8, NULL, 0, 0);
  uint64_t g = counter("group", step_id, NULL, NVTX_SCOPE_CURRENT_SW_THREAD, 0);
  nvtxCounterSampleInt64(D, i, -5);
  nvtxCounterSampleFloat64(D, f, 2.5);
  int8_t small = -3;
  nvtxCounterSample(D, s, &small, 1);
  Step group = {7, 7.5};
  nvtxCounterSample(D, g, &group, sizeof(group));
  nvtxCounterSample(D, i, NULL, 8);
  nvtxCounterSample(D, 12345, "odd", 3);
  nvtxCounterSampleNoValue(D, i, NVTX_COUNTER_SAMPLE_UNAVAILABLE);
  nvtxCounterAttr_t shorter;
  memset(&shorter, 0xee, sizeof(shorter));
  shorter.structSize = 24;
  shorter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_UINT64;
  shorter.name = "shorter";
  nvtxCounterSampleInt64(D, nvtxCounterRegister(D, &shorter), 1);

  int64_t t = nvtxTimestampGet();
  int64_t times[] = {t - 3000, t - 2000, t - 1000};
  int64_t values[] = {1, 2, 3};
  nvtxCounterBatch_t batch = {i, values, sizeof(values), 0, times, sizeof(times)};
  nvtxCounterBatchSubmit(D, &batch);
  int64_t pair[] = {t - 5000, 100};
  nvtxCounterBatch_t paired = {
      i, values, sizeof(values), NVTX_COUNTER_BATCH_FLAG_BEGINTIME_INTERVAL_PAIR, pair, sizeof(pair)};
  nvtxCounterBatchSubmit(D, &paired);
  paired.flags = NVTX_COUNTER_BATCH_FLAG_ENDTIME_INTERVAL_PAIR;
  nvtxCounterBatchSubmit(D, &paired);
  Step groups[] = {{1, 1}, {2, 2}};
  nvtxCounterBatch_t grouped = {g, groups, sizeof(groups), 0, times, 16};
  nvtxCounterBatchSubmit(D, &grouped);
  printf("t=%lld\n", (long long)t);

  // Other clocks: of the system, of the program, tied to ours by points, by a factor, through another.
  static int64_t shift = 5000;
  nvtxTimeDomainAttr_t clocks[5] = {
      {0, NVTX_TIMESTAMP_TYPE_CPU_CLOCK_GETTIME_REALTIME, (1 << 24) + 1, 0, 1000000000, 0},
      {0, 0, (1 << 24) + 2, 0, 0, 0},
      {0, 0, (1 << 24) + 3, 0, 0, 0},
      {0, 0, (1 << 24) + 4, 0, 0, 0},
      {0, 0, 0, 0, 0, 0}};
  uint64_t ids[5];
  for (int n = 0; n < 5; ++n) {
    ids[n] = nvtxTimeDomainRegister(D, &clocks[n]);
  }
  nvtxTimerSource(D, ids[1], NVTX_TIMER_SOURCE_SAFE_CALL_AFTER_PROCESS_TEARDOWN, own_clock);
  nvtxTimerSourceWithData(D, ids[2], 0, own_clock_of, &shift);
  nvtxSyncPoint_t points[] = {{0, t - 1000000}, {500, t - 500000}, {1000, t}};
  nvtxTimeSyncPointTable(D, ids[3], NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED, points, 3);
  nvtxTimeSyncPoint(D, ids[4], ids[3], 0, 500);
  nvtxTimeSyncPoint(D, ids[4], ids[3], 500, 1000);
  usleep(1000);
  int64_t stamps[5] = {now(CLOCK_REALTIME), own_clock(), own_clock_of(&shift), 900, 400};
  int64_t ours = nvtxTimestampGet();
  printf("ours=%lld\n", (long long)ours);
  for (int n = 0; n < 5; ++n) {
    IdSemantics clock = {{sizeof(clock), 2, 1, NULL}, ids[n]};
    char name[] = "clock 0";
    name[6] = (char)('0' + n);
    uint64_t id = counter(name, NVTX_PAYLOAD_ENTRY_TYPE_INT64, &clock, 0, 0);
    nvtxCounterBatch_t one = {id, values, 8, 0, &stamps[n], 8};
    nvtxCounterBatchSubmit(D, &one);
  }
  nvtxTimeDomainAttr_t lonely = {0, 0, 0, 0, 0, 0};
  IdSemantics unknown = {{sizeof(unknown), 2, 1, NULL}, nvtxTimeDomainRegister(D, &lonely)};
  uint64_t id = counter("no clock", NVTX_PAYLOAD_ENTRY_TYPE_INT64, &unknown, 0, 0);
  nvtxCounterBatch_t lost = {id, values, 8, 0, times, 8};
  nvtxCounterBatchSubmit(D, &lost);
  nvtxTimestampConversionFactor(D, unknown.id, NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED, 2.0, 100, t - 4000);
  int64_t factor_time = 1100;
  lost.timestamps = &factor_time;
  nvtxCounterBatchSubmit(D, &lost);
}

static void deferred(void) {
  IdSemantics tool = {{sizeof(tool), 2, 1, NULL}, NVTX_TIMESTAMP_TYPE_TOOL_PROVIDED};
  typedef struct {
    int64_t begin, end;
    const char *name;
    uint32_t category;
  } Range;
  uint64_t stamp = NVTX_PAYLOAD_ENTRY_FLAG_TIMESTAMP;
  nvtxPayloadSchemaEntry_t range[] = {
      {stamp | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_BEGIN, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "begin", NULL, 0, 0,
       &tool.head, NULL},
      {stamp | NVTX_PAYLOAD_ENTRY_FLAG_RANGE_END, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "end", NULL, 0, 8,
       &tool.head, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE, NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "name", NULL, 0, 16, NULL,
       NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_CATEGORY, "category", NULL, 0, 24, NULL, NULL}};
  uint64_t range_id = schema("range", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, range, 4, sizeof(Range),
                             NVTX_PAYLOAD_SCHEMA_FLAG_RANGE_PUSHPOP, 0);
  int64_t t = nvtxTimestampGet();
  printf("deferred=%lld\n", (long long)t);
  Range ranges[] = {{t - 9000, t - 8000, "deferred 0", 5}, {t - 7000, t - 6000, "deferred 1", 6}};
  nvtxPayloadData_t single = {range_id, sizeof(Range), &ranges[0]};
  nvtxEventSubmit(D, &single, 1);
  nvtxEventBatch_t batch = {range_id, sizeof(ranges), ranges, 0, 0, NULL, 0, 0};
  nvtxEventBatchSubmit(D, &batch);

  typedef struct {
    int64_t time;
    uint64_t name;
  } Mark;
  nvtxPayloadSchemaEntry_t mark[] = {
      {stamp | NVTX_PAYLOAD_ENTRY_FLAG_MARK, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "time", NULL, 0, 0, &tool.head,
       NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE | NVTX_PAYLOAD_ENTRY_FLAG_OFFSET_FROM_BASE |
           NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED,
       NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "name", NULL, 0, 8, NULL, NULL}};
  uint64_t mark_id = schema("mark", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, mark, 2, sizeof(Mark),
                            NVTX_PAYLOAD_SCHEMA_FLAG_MARK, 0);
  const char flex[] = "xxxxfirst\0second";
  Mark marks[] = {{t - 500, 4}, {t - 400, 10}};
  nvtxEventBatch_t flexible = {mark_id, sizeof(marks), marks, 0, 0, flex, sizeof(flex) - 4, 4};
  nvtxEventBatchSubmit(D, &flexible);

  typedef struct {
    int64_t time;
    uint64_t range;
  } Half;
  nvtxPayloadSchemaEntry_t half[] = {
      {stamp, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "time", NULL, 0, 0, &tool.head, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_RANGE_ID, "range", NULL, 0, 8, NULL, NULL}};
  uint64_t halves[4];
  for (uint64_t kind = 5; kind <= 8; ++kind) {  // push pop start end
    halves[kind - 5] = schema("half", NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, half, 2, sizeof(Half), kind << 3, 0);
  }
  Half times[] = {{t - 300, 0}, {t - 200, 0}, {t - 290, 1}, {t - 280, 2}, {t - 270, 1}, {t - 260, 2}};
  const int kinds[] = {0, 1, 2, 2, 3, 3};
  for (int i = 0; i < 6; ++i) {
    nvtxPayloadData_t one = {halves[kinds[i]], sizeof(Half), &times[i]};
    nvtxEventSubmit(D, &one, 1);
  }
  nvtxPayloadData_t end = {halves[3], sizeof(Half), &times[5]};
  nvtxEventSubmit(D, &end, 1);  // ended already
  nvtxPayloadData_t plain = {step_id, 4, "abcd"};
  nvtxEventSubmit(D, &plain, 1);  // says nothing
  nvtxEventBatch_t unknown = {(uint64_t)1 << 41, 5, "bytes", 0, 0, NULL, 0, 0};
  nvtxEventBatchSubmit(D, &unknown);

  // Events of different lengths, one behind the other.
  nvtxPayloadSchemaEntry_t moving[] = {
      {stamp | NVTX_PAYLOAD_ENTRY_FLAG_MARK, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "time", NULL, 0, 0, &tool.head,
       NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_EVENT_MESSAGE | NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_FIXED_SIZE,
       NVTX_PAYLOAD_ENTRY_TYPE_CSTRING, "name", NULL, 4, 0, NULL, NULL},
      {0, NVTX_PAYLOAD_ENTRY_TYPE_UINT32, "n", NULL, 0, 0, NULL, NULL},
      {NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_LENGTH_INDEX, NVTX_PAYLOAD_ENTRY_TYPE_INT64, "values", NULL, 2, 0, NULL,
       NULL}};
  uint64_t moving_id =
      schema("moving", NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC, moving, 4, 0, NVTX_PAYLOAD_SCHEMA_FLAG_MARK, 0);
  struct {
    int64_t time;
    char name[4];
    uint32_t n;
    int64_t values[2];
    int64_t next_time;
    char next_name[4];
    uint32_t next_n;
  } two = {t - 50, "two", 2, {7, 8}, t - 40, "non", 0};
  nvtxEventBatch_t dynamic = {moving_id, sizeof(two), &two, 0, 0, NULL, 0, 0};
  nvtxEventBatchSubmit(D, &dynamic);
}

static void objects(void) {
  nvtxResourceAttributes_t a;
  memset(&a, 0, sizeof(a));
  a.version = NVTX_VERSION;
  a.size = sizeof(a);
  a.identifierType = NVTX_RESOURCE_TYPE_SYNC_PTHREAD_MUTEX;
  a.identifier.ullValue = 0x1234;
  a.messageType = NVTX_MESSAGE_TYPE_ASCII;
  a.message.ascii = "a mutex";
  nvtxResourceHandle_t resource = nvtxDomainResourceCreate(D, &a);
  a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  a.message.unicode = L"a \"wide\" mutex";
  nvtxDomainResourceCreate(NULL, &a);
  a.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  a.message.registered = nvtxDomainRegisterStringA(D, "registered name");
  nvtxDomainResourceCreate(D, &a);
  nvtxDomainResourceDestroy(resource);
  nvtxDomainResourceDestroy(NULL);

  nvtxSyncUserAttributes_t s;
  memset(&s, 0, sizeof(s));
  s.version = NVTX_VERSION;
  s.size = sizeof(s);
  s.messageType = NVTX_MESSAGE_TYPE_ASCII;
  s.message.ascii = "spin lock";
  nvtxSyncUser_t lock = nvtxDomainSyncUserCreate(D, &s);
  nvtxDomainSyncUserAcquireStart(lock);
  nvtxDomainSyncUserAcquireFailed(lock);
  nvtxDomainSyncUserAcquireStart(lock);
  nvtxDomainSyncUserAcquireSuccess(lock);
  nvtxDomainSyncUserReleasing(lock);
  nvtxDomainSyncUserDestroy(lock);
  nvtxDomainSyncUserDestroy(NULL);
}

static void memory(void) {
  static char pool[1000];
  nvtxMemVirtualRangeDesc_t range = {sizeof(pool), pool};
  nvtxMemHeapDesc_t heap;
  memset(&heap, 0, sizeof(heap));
  heap.extCompatID = NVTX_EXT_COMPATID_MEM;
  heap.structSize = sizeof(heap);
  heap.usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR;
  heap.type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS;
  heap.typeSpecificDescSize = sizeof(range);
  heap.typeSpecificDesc = &range;
  heap.messageType = NVTX_MESSAGE_TYPE_ASCII;
  heap.message.ascii = "pool";
  nvtxMemHeapHandle_t h = nvtxMemHeapRegister(D, &heap);
  nvtxMemVirtualRangeDesc_t parts[] = {{100, pool}, {200, pool + 100}};
  nvtxMemRegionHandle_t handles[2] = {NULL, NULL};
  nvtxMemRegionsRegisterBatch_t regions = {NVTX_EXT_COMPATID_MEM,
                                           sizeof(regions),
                                           NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                           h,
                                           2,
                                           sizeof(parts[0]),
                                           parts,
                                           handles};
  nvtxMemRegionsRegister(D, &regions);
  printf("pool=%llu\n", (unsigned long long)(uintptr_t)pool);
  parts[0].size = 50;
  nvtxMemRegionsResizeBatch_t resized = {
      NVTX_EXT_COMPATID_MEM, sizeof(resized), NVTX_MEM_TYPE_VIRTUAL_ADDRESS, 1, sizeof(parts[0]), parts};
  nvtxMemRegionsResize(D, &resized);
  nvtxMemRegionNameDesc_t name = {NVTX_MEM_REGION_REF_TYPE_HANDLE,
                                  NVTX_MESSAGE_TYPE_ASCII,
                                  {.handle = handles[1]},
                                  {.ascii = "weights"},
                                  4,
                                  0};
  nvtxMemRegionsNameBatch_t names = {NVTX_EXT_COMPATID_MEM, sizeof(names), 0, 1, sizeof(name), &name, 0};
  nvtxMemRegionsName(D, &names);
  nvtxMemPermissionsHandle_t permissions =
      nvtxMemPermissionsCreate(D, NVTX_MEM_PERMISSIONS_CREATE_FLAGS_EXCLUDE_GLOBAL_WRITE);
  nvtxMemPermissionsAssignRegionDesc_t assigned = {
      NVTX_MEM_PERMISSIONS_REGION_FLAGS_READ, NVTX_MEM_REGION_REF_TYPE_POINTER, {.pointer = pool}};
  nvtxMemPermissionsAssignBatch_t assign = {NVTX_EXT_COMPATID_MEM, sizeof(assign), 0, permissions, 1,
                                            sizeof(assigned),      &assigned,      0};
  nvtxMemPermissionsAssign(D, &assign);
  nvtxMemPermissionsBind(D, permissions, NVTX_MEM_PERMISSIONS_BIND_SCOPE_CPU_THREAD,
                         NVTX_MEM_PERMISSIONS_BIND_FLAGS_STRICT_WRITE);
  nvtxMemPermissionsUnbind(D, NVTX_MEM_PERMISSIONS_BIND_SCOPE_CPU_THREAD);
  nvtxMemPermissionsReset(D, permissions);
  nvtxMemPermissionsDestroy(D, permissions);
  nvtxMemRegionRef_t gone = {.pointer = pool};
  nvtxMemRegionsUnregisterBatch_t unregistered = {
      NVTX_EXT_COMPATID_MEM, sizeof(unregistered), NVTX_MEM_REGION_REF_TYPE_POINTER, 1, sizeof(gone), &gone};
  nvtxMemRegionsUnregister(D, &unregistered);
  nvtxMemHeapReset(D, h);
  nvtxMemHeapUnregister(D, h);
}

static void *storm(void *name) {
  for (int32_t i = 0; i < 2000; ++i) {
    Step step = {i, i * 0.5};
    nvtxPayloadData_t data = {step_id, sizeof(step), &step};
    nvtxEventAttributes_t a = with_payloads(name, &data, 1);
    nvtxDomainRangePushEx(D, &a);
    nvtxDomainRangePop(D);
  }
  return NULL;
}

static void threads(void) {
  pthread_t one, two;
  pthread_create(&one, NULL, storm, "storm 1");
  pthread_create(&two, NULL, storm, "storm 2");
  pthread_join(one, NULL);
  pthread_join(two, NULL);
}

static void forks(void) {
  Step step = {1, 1};
  nvtxPayloadData_t data = {step_id, sizeof(step), &step};
  nvtxEventAttributes_t a = with_payloads("open at the fork", &data, 1);
  nvtxRangeId_t id = nvtxDomainRangeStartEx(D, &a);
  nvtxDomainRangePushEx(D, &a);
  pid_t child = fork();
  if (child == 0) {
    step.rank = 2;
    nvtxRangeEndPayload(D, id, &data, 1);
    nvtxDomainRangePop(D);
    a.message.ascii = "of the child";
    nvtxDomainMarkEx(D, &a);
    exit(0);
  }
  waitpid(child, NULL, 0);
  nvtxDomainRangePop(D);
  nvtxDomainRangeEnd(D, id);
}

int main(void) {
  D = nvtxDomainCreateA("ext");
  printf("enabled=%d\n", nvtxDomainIsEnabled(D));
  payloads();
  odd_payloads();
  pointers();
  counters();
  deferred();
  objects();
  memory();
  threads();
  fflush(stdout);
  forks();
  return 0;
}
