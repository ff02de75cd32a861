/* A tool for CUPTI that keeps records as they are: CUDA_INJECTION64_PATH loads it, DUMP names the file it writes.
 * The file: for each record its size (4 bytes), then its bytes. Lines of what else happened go to DUMP.txt.
 * KINDS: numbers of kinds, with commas between. FLUSH: the flag of the flush at exit; flush at once with SIGUSR1. CLOCK=0: none. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int cuptiSubscribe(void **subscriber, void (*callback)(void *, uint32_t, uint32_t, const void *), void *user);
int cuptiEnableDomain(uint32_t enable, void *subscriber, uint32_t domain);
int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void));
int cuptiActivityRegisterCallbacks(void (*request)(uint8_t **, size_t *, size_t *),
                                   void (*complete)(void *, uint32_t, uint8_t *, size_t, size_t));
int cuptiActivityEnable(uint32_t kind);
int cuptiActivityFlushAll(uint32_t flag);
int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record);
int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *dropped);

static FILE *dump, *text;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void request(uint8_t **buffer, size_t *size, size_t *most) {
  *size = getenv("NO_BUFFER") != NULL ? 0 : 65536;
  *buffer = *size == 0 ? NULL : calloc(1, *size);
  *most = 0;
}

static void write_record(const uint8_t *record, const uint8_t *end) {
  uint32_t size = (uint32_t)(end - record);
  fwrite(&size, sizeof(size), 1, dump);
  fwrite(record, 1, size, dump);
}

static void complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
  (void)context, (void)stream, (void)size;
  pthread_mutex_lock(&lock);
  uint8_t *record = NULL, *before = NULL;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == 0) {
    if (before != NULL) write_record(before, record);
    before = record;
  }
  if (before != NULL) write_record(before, buffer + valid);
  fprintf(text, "buffer %zu\n", valid);
  fflush(dump);
  fflush(text);
  pthread_mutex_unlock(&lock);
  free(buffer);
}

static void callback(void *user, uint32_t domain, uint32_t id, const void *data) {
  (void)user;
  pthread_mutex_lock(&lock);
  fprintf(text, "callback %u %u %u\n", domain, id, domain == 1 || domain == 2 ? *(const uint32_t *)data : 0);
  pthread_mutex_unlock(&lock);
}

static void flush_now(int signal) {
  (void)signal;
  cuptiActivityFlushAll(0);
}

static void leave(void) {
  size_t dropped = 0;
  const char *flag = getenv("FLUSH");
  cuptiActivityFlushAll(flag == NULL ? 1 : (uint32_t)atoi(flag));
  cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
  fprintf(text, "dropped %zu\n", dropped);
  fclose(text);
  fclose(dump);
}

int InitializeInjection(void);
int InitializeInjection(void) {
  char path[512], kinds[256];
  void *subscriber = NULL;
  snprintf(path, sizeof(path), "%s.txt", getenv("DUMP"));
  dump = fopen(getenv("DUMP"), "w");
  text = fopen(path, "w");
  if (getenv("CLOCK") == NULL) cuptiActivityRegisterTimestampCallback(now);
  fprintf(text, "subscribe %d\n", cuptiSubscribe(&subscriber, callback, NULL));
  if (getenv("DOMAIN") != NULL) cuptiEnableDomain(1, subscriber, (uint32_t)atoi(getenv("DOMAIN")));
  cuptiActivityRegisterCallbacks(request, complete);
  snprintf(kinds, sizeof(kinds), "%s", getenv("KINDS"));
  for (char *left = kinds, *word; (word = strsep(&left, ",")) != NULL;) {
    fprintf(text, "enable %s %d\n", word, cuptiActivityEnable((uint32_t)atoi(word)));
  }
  signal(SIGUSR1, flush_now);
  atexit(leave);
  return 1;
}
