// Calls every core and core2 entry of NVTX from C, and prints what push and pop return.
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static nvtxRangeId_t crossing;

static nvtxEventAttributes_t event(void) {
  nvtxEventAttributes_t e;
  memset(&e, 0xee, sizeof(e));  // what is not set holds garbage in real programs
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.category = 0;
  e.colorType = NVTX_COLOR_UNKNOWN;
  e.payloadType = NVTX_PAYLOAD_UNKNOWN;
  e.messageType = NVTX_MESSAGE_UNKNOWN;
  return e;
}

static void *worker(void *unused) {
  (void)unused;
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "worker");
  nvtxRangePushA("in worker");
  nvtxRangePop();
  nvtxRangeEnd(crossing);
  return NULL;
}

int main(void) {
  nvtxInitialize(NULL);
  int outer = nvtxRangePushA("outer"), inner = nvtxRangePushW(L"w\u00efde \U0001f600");
  int after_inner = nvtxRangePop(), after_outer = nvtxRangePop(), unmatched = nvtxRangePop();
  printf("levels %d %d %d %d %d\n", outer, inner, after_inner, after_outer, unmatched);
  nvtxMarkA("mark");
  nvtxMarkW(L"wide mark");
  nvtxNameCategoryA(7, "seven");
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "the main thread");

  nvtxDomainHandle_t domain = nvtxDomainCreateA("my.domain"), again = nvtxDomainCreateW(L"my.domain");
  printf("same domain %d\n", domain == again);
  nvtxStringHandle_t text = nvtxDomainRegisterStringA(domain, "registered");
  nvtxDomainNameCategoryA(domain, 3, "three");
  nvtxEventAttributes_t e = event();
  e.category = 3;
  e.colorType = NVTX_COLOR_ARGB;
  e.color = 0xff00ff00;
  e.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  e.payload.dValue = 2.5;
  e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  e.message.registered = text;
  int level = nvtxDomainRangePushEx(domain, &e), popped = nvtxDomainRangePop(domain);
  printf("domain levels %d %d\n", level, popped);
  nvtxDomainMarkEx(domain, &e);
  nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &e));

  e = event();
  e.category = 7;
  e.messageType = NVTX_MESSAGE_TYPE_ASCII;
  e.message.ascii = "uint32";
  e.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  e.payload.uiValue = 42;
  nvtxMarkEx(&e);
  e.message.ascii = "int32";
  e.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  e.payload.iValue = -42;
  nvtxMarkEx(&e);
  e.message.ascii = "int64";
  e.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  e.payload.llValue = -1234567890123;
  nvtxMarkEx(&e);
  e.message.ascii = "float";
  e.payloadType = NVTX_PAYLOAD_TYPE_FLOAT;
  e.payload.fValue = 0.5f;
  nvtxMarkEx(&e);

  // Two domains on one thread need not nest.
  nvtxRangePushA("crossed");
  nvtxDomainRangePushEx(domain, &e);
  nvtxRangePop();
  nvtxDomainRangePop(domain);

  nvtxRangeEnd(nvtxRangeStartA("process"));
  nvtxRangeEnd(12345);
  crossing = nvtxRangeStartW(L"crossing");
  pthread_t thread;
  pthread_create(&thread, NULL, worker, NULL);
  pthread_join(thread, NULL);
  nvtxRangeEnd(crossing);  // a second end is ignored
  nvtxDomainDestroy(again);
  nvtxDomainRangePushEx(domain, &e);
  nvtxDomainRangePop(domain);
  nvtxRangePushA("never closed");
  return 0;
}
