// What NVTX calls cost in C, beside two reads of the counter, in turn in one run. Prints one JSON object.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__x86_64__)
#include <x86intrin.h>
static inline uint64_t counter(void) { return __rdtsc(); }
#else
static inline uint64_t counter(void) {
  uint64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#endif

#define ROUNDS 25
#define CALLS 100000

static double cpu_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static volatile uint64_t sink;
static nvtxDomainHandle_t domain;
static nvtxEventAttributes_t attributes, with_payload;
static nvtxPayloadData_t payload;
static uint64_t whole, real;
static double values[8];

static void empty(void) { __asm__ volatile("" ::: "memory"); }
static void two_reads(void) { sink = counter(); sink = counter(); }
static void push_pop(void) { nvtxRangePushA("short name"); nvtxRangePop(); }
static void push_pop_registered(void) { nvtxDomainRangePushEx(domain, &attributes); nvtxDomainRangePop(domain); }
static void push_pop_long(void) {
  nvtxRangePushA("a name of sixty-four characters, as programs make them from paths");
  nvtxRangePop();
}
static void push_pop_payload(void) { nvtxDomainRangePushEx(domain, &with_payload); nvtxDomainRangePop(domain); }
static void mark_registered(void) { nvtxDomainMarkEx(domain, &attributes); }
static void sample_int64(void) { nvtxCounterSampleInt64(domain, whole, 1); }
static void sample_float64(void) { nvtxCounterSampleFloat64(domain, real, 0.5); }
static void is_enabled(void) { sink = nvtxDomainIsEnabled(domain); }
static void timestamp(void) { sink = (uint64_t)nvtxTimestampGet(); }
static void mark(void) { nvtxMarkA("mark"); }
static void start_end(void) { nvtxRangeEnd(nvtxRangeStartA("range")); }

int main(void) {
  domain = nvtxDomainCreateA("bench");
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.colorType = NVTX_COLOR_ARGB;
  attributes.color = 0xff00ff00;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = nvtxDomainRegisterStringA(domain, "registered");
  with_payload = attributes;
  payload = (nvtxPayloadData_t){NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64, sizeof values, values};
  with_payload.payloadType = NVTX_PAYLOAD_TYPE_EXT;
  with_payload.reserved0 = 1;
  with_payload.payload.ullValue = (uint64_t)(uintptr_t)&payload;
  nvtxCounterAttr_t counter = {.structSize = sizeof counter, .schemaId = NVTX_PAYLOAD_ENTRY_TYPE_INT64, .name = "whole"};
  whole = nvtxCounterRegister(domain, &counter);
  counter.schemaId = NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64;
  counter.name = "real";
  real = nvtxCounterRegister(domain, &counter);
  struct { const char *name; void (*call)(void); } cases[] = {
      {"empty", empty}, {"two_reads", two_reads}, {"push_pop", push_pop}, {"push_pop_registered", push_pop_registered},
      {"mark", mark}, {"start_end", start_end}, {"push_pop_long", push_pop_long}, {"push_pop_payload", push_pop_payload},
      {"mark_registered", mark_registered}, {"sample_int64", sample_int64}, {"sample_float64", sample_float64},
      {"is_enabled", is_enabled}, {"timestamp", timestamp},
  };
  enum { N = sizeof(cases) / sizeof(cases[0]) };
  static double times[N][ROUNDS];
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < N; ++i) {
      void (*call)(void) = cases[i].call;
      double begin = cpu_ns();
      for (int k = 0; k < CALLS; ++k) {
        call();
      }
      times[i][round] = (cpu_ns() - begin) / CALLS;
    }
  }
  double base = 0;
  printf("{");
  for (int i = 0; i < N; ++i) {
    qsort(times[i], ROUNDS, sizeof(double), ascending);
    if (i == 0) {
      base = times[i][ROUNDS / 2];
    }
    printf("%s\"%s\": %.2f", i ? ", " : "", cases[i].name, times[i][ROUNDS / 2] - (i ? base : 0));
  }
  printf("}\n");
  return 0;
}
