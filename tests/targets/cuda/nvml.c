/* Looks like libnvidia-ml.so.1: as many GPUs as FAKE_NVML_GPUS says (2), whose figures grow with each question. Words in FAKE_NVML:
 * nodriver (nothing starts), hang (so does nvmlInit), gpm (they count), mig (no utilization), lost (the last GPU is gone after three
 * readings). Own declarations; tests only. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SUCCESS = 0, UNINITIALIZED = 1, NOT_SUPPORTED = 3, DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15 };

struct Gpu {
  unsigned number;
  unsigned asked;
};
static struct Gpu gpus[16];
static int ready;

static int says(const char *word) {
  const char *words = getenv("FAKE_NVML");
  return words != NULL && strstr(words, word) != NULL;
}

static unsigned count(void) {
  const char *text = getenv("FAKE_NVML_GPUS");
  return text != NULL ? (unsigned)atoi(text) : 2;
}

static int answer(struct Gpu *gpu) {
  if (!ready) return UNINITIALIZED;
  gpu->asked++;
  return says("lost") && gpu->number + 1 == count() && gpu->asked > 21 ? GPU_IS_LOST : SUCCESS;
}

const char *nvmlErrorString(int code) {
  return code == DRIVER_NOT_LOADED ? "Driver Not Loaded" : code == NOT_SUPPORTED ? "Not Supported" : "Broken";
}

int nvmlInit_v2(void) {
  if (says("hang")) pause();
  if (says("nodriver")) return DRIVER_NOT_LOADED;
  memset(gpus, 0, sizeof(gpus));
  ready = 1;
  return SUCCESS;
}

int nvmlShutdown(void) {
  ready = 0;
  return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
  snprintf(out, size, "580.95.05");
  return ready ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetCount_v2(unsigned *out) {
  *out = count();
  return ready ? SUCCESS : UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned number, struct Gpu **out) {
  gpus[number].number = number;
  *out = &gpus[number];
  return SUCCESS;
}

int nvmlDeviceGetUUID(struct Gpu *gpu, char *out, unsigned size) {
  snprintf(out, size, "GPU-%08u-0000-0000-0000-000000000000", gpu->number);
  return SUCCESS;
}

int nvmlDeviceGetName(struct Gpu *gpu, char *out, unsigned size) {
  snprintf(out, size, "Fake GPU %u", gpu->number);
  return SUCCESS;
}

int nvmlDeviceGetUtilizationRates(struct Gpu *gpu, unsigned out[2]) {
  int code = answer(gpu);
  out[0] = 40 + gpu->number;
  out[1] = 20;
  return says("mig") ? NOT_SUPPORTED : code;
}

int nvmlDeviceGetMemoryInfo(struct Gpu *gpu, unsigned long long out[3]) {
  out[0] = 100ull << 30;
  out[1] = 90ull << 30;
  out[2] = 10ull << 30;
  return answer(gpu);
}

int nvmlDeviceGetPowerUsage(struct Gpu *gpu, unsigned *out) {
  *out = 500500;
  return answer(gpu);
}

int nvmlDeviceGetClockInfo(struct Gpu *gpu, int kind, unsigned *out) {
  *out = kind == 1 ? 1980 : 2619;
  return answer(gpu);
}

int nvmlDeviceGetTemperature(struct Gpu *gpu, int sensor, unsigned *out) {
  *out = sensor == 0 ? 65 : 0;
  return answer(gpu);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(struct Gpu *gpu, unsigned long long *out) {
  *out = gpu->number == 0 ? 4 : 1; /* the first at its power limit, the others idle */
  return answer(gpu);
}

struct Support {
  unsigned version, supported;
};
struct Sample {
  unsigned taken;
};
struct Metric {
  unsigned metric;
  int result;
  double value;
  const char *texts[3];
};
struct Metrics {
  unsigned version, count;
  struct Sample *samples[2];
  struct Metric metrics[];
};

int nvmlGpmQueryDeviceSupport(struct Gpu *gpu, struct Support *out) {
  out->supported = says("gpm") && gpu->number == 0; /* the others are older */
  return out->version == 1 ? SUCCESS : NOT_SUPPORTED;
}

int nvmlGpmSampleAlloc(struct Sample **out) {
  *out = calloc(1, sizeof(**out));
  return SUCCESS;
}

int nvmlGpmSampleGet(struct Gpu *gpu, struct Sample *sample) {
  sample->taken = ++gpu->asked;
  return SUCCESS;
}

int nvmlGpmMetricsGet(struct Metrics *asked) {
  if (asked->version != 1 || asked->samples[0]->taken == 0 ||
      asked->samples[0]->taken >= asked->samples[1]->taken)
    return 2;
  for (unsigned i = 0; i < asked->count; ++i) {
    struct Metric *metric = &asked->metrics[i];
    metric->result = metric->metric == 11 ? NOT_SUPPORTED : SUCCESS; /* this one has no FP64 to speak of */
    metric->value = metric->metric;
  }
  return SUCCESS;
}
