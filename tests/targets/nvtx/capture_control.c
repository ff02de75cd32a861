// Ranges with a registered and a plain message, in a domain of their own: for capture ranges by name.
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>

static void range(nvtxDomainHandle_t domain, nvtxStringHandle_t registered, const char *plain) {
  nvtxEventAttributes_t event = {0};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = registered ? NVTX_MESSAGE_TYPE_REGISTERED : NVTX_MESSAGE_TYPE_ASCII;
  if (registered) {
    event.message.registered = registered;
  } else {
    event.message.ascii = plain;
  }
  nvtxDomainRangePushEx(domain, &event);
  nvtxRangePushA("inside");
  nvtxRangePop();
  nvtxDomainRangePop(domain);
}

int main(void) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA("train");
  nvtxDomainHandle_t other = nvtxDomainCreateA("other");
  range(domain, NULL, "another");
  range(other, nvtxDomainRegisterStringA(other, "registered"), NULL);
  range(domain, nvtxDomainRegisterStringA(domain, "registered"), NULL);
  range(domain, NULL, "registered");
  puts("done");
  return 3;
}
