// Buffers filled by hand, in C: each launch writes four units of three regions. `intrakernel_regions LAUNCHES`.
#include <stdio.h>
#include <time.h>

#include "warplens_program.h"

enum { UNITS = 4, SLOTS = 8, REGIONS = 3 };

static uint64_t now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

// What a warp does at its begin and its end; `memory` is its slice.
static void unit(char *memory, uint32_t number, uint32_t generation) {
  uint64_t begin = now();
  for (uint32_t region = 0; region < REGIONS; ++region) {
    uint32_t record[4] = {(uint32_t)now(), 0, region | 8u << 16, number};
    while ((uint32_t)now() == record[0]) {
    }
    record[1] = (uint32_t)now();
    memcpy(memory + 64 + 16 * region, record, sizeof(record));
  }
  uint64_t end = now();
  uint32_t words[8] = {0x31554C57u, 1u | 1u << 16, generation, number, 0, number, number, REGIONS};
  uint64_t times[4] = {begin, end, begin, end};
  memcpy(memory, words, sizeof(words));
  memcpy(memory + sizeof(words), times, sizeof(times));
}

int main(int count, char **words) {
  warplens_shape shape = warplens_slices(UNITS, 1, SLOTS);
  char *memory = calloc(1, warplens_bytes(&shape));
  uint32_t buffer = warplens_register((uint64_t)(uintptr_t)memory, warplens_bytes(&shape), 0,
                                      "load, multiply,store", "by hand");
  uint32_t launches = count > 1 ? (uint32_t)atoi(words[1]) : 1;
  int recorded = 0;
  for (uint32_t generation = 1; generation <= launches; ++generation) {
    char name[32];
    snprintf(name, sizeof(name), "step %u", generation);
    warplens_store(buffer);
    warplens_head(&shape, generation, memory);
    recorded += warplens_launch(buffer, generation, 0, name);
    for (uint32_t number = 0; number < UNITS; ++number) {
      unit(memory + WARPLENS_HEAD_BYTES + number * warplens_stride(&shape), number, generation);
    }
  }
  warplens_unregister(buffer);
  free(memory);
  printf("%s, %d launches\n", buffer != 0 ? "recorded" : "not recorded", recorded);
  return 0;
}
