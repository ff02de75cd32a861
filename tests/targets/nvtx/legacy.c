// A program of before NVTX 3: it is linked against libnvToolsExt.so.1, whose few functions are declared here.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef struct {
  uint16_t version, size;
  uint32_t category;
  int32_t color_type;
  uint32_t color;
  int32_t payload_type, reserved;
  union {
    uint64_t u64;
    double f64;
  } payload;
  int32_t message_type;
  union {
    const char *ascii;
    void *registered;
  } message;
} Event;

int nvtxRangePushA(const char *name);
int nvtxRangePushEx(const Event *event);
int nvtxRangePop(void);
uint64_t nvtxRangeStartA(const char *name);
void nvtxRangeEnd(uint64_t id);
void nvtxMarkEx(const Event *event);
void nvtxNameOsThreadA(uint32_t thread, const char *name);
void nvtxNameCategoryA(uint32_t category, const char *name);
void *nvtxDomainCreateA(const char *name);
void *nvtxDomainRegisterStringA(void *domain, const char *text);
int nvtxDomainRangePushEx(void *domain, const Event *event);
int nvtxDomainRangePop(void *domain);

static void *worker(void *id) {
  nvtxRangeEnd(*(uint64_t *)id);
  return NULL;
}

int main(void) {
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "old thread");
  nvtxNameCategoryA(9, "nine");
  Event event = {.version = 2, .size = sizeof(event), .category = 9, .color_type = 1, .color = 0xff112233};
  event.payload_type = 1;
  event.payload.u64 = 77;
  event.message_type = 1;
  event.message.ascii = "old event";
  int levels[] = {nvtxRangePushA("old outer"), nvtxRangePushEx(&event), nvtxRangePop(), nvtxRangePop()};
  nvtxMarkEx(&event);
  void *domain = nvtxDomainCreateA("old.domain");
  event.message_type = 3;
  event.message.registered = nvtxDomainRegisterStringA(domain, "old string");
  nvtxDomainRangePushEx(domain, &event);
  nvtxDomainRangePop(domain);
  uint64_t id = nvtxRangeStartA("old process");
  pthread_t thread;
  pthread_create(&thread, NULL, worker, &id);
  pthread_join(thread, NULL);
  printf("levels %d %d %d %d\n", levels[0], levels[1], levels[2], levels[3]);
  return 0;
}
