/* The agent's C ABI, for the launcher and for programs that load the agent themselves. C11. */
#ifndef WARPLINE_WARPLINE_H
#define WARPLINE_WARPLINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 2; a launcher refuses an agent with another number. */
uint32_t warpline_abi_version(void);

/* Reads the clocks together, bracketed so that they agree to some tens of ns:
 * out[0] the counter the agent would use, out[1] CLOCK_MONOTONIC ns, out[2] CLOCK_REALTIME ns.
 * Returns the ClockKind (0 monotonic, 1 tsc, 2 cntvct). */
uint32_t warpline_clock_sample(uint64_t out[3]);

/* Creates the control page at `path`: clock constants from `early` (an earlier sample, some ms ago) to now.
 * Returns 0, or an errno. */
int warpline_control_create(const char *path, const uint64_t early[3]);

/* Records `pairs` push/pop ranges into a scratch spool in `directory` (removed again) and returns the cost of one pair
 * in ns, or a negative errno. */
double warpline_pair_cost(const char *directory, uint32_t pairs);

/* Recording without a launcher: begins in `directory`, which holds a control page. Returns 0, EBUSY when this process
 * records already, or another errno. May be called again after warpline_stop, with another directory. */
int warpline_start(const char *directory);

/* Ends it: what comes later is not recorded, open ranges stay open. The files may then be read and removed; what threads in
 * the middle of a call still write goes nowhere. Returns 0, or ENOENT when nothing was recorded through warpline_start. */
int warpline_stop(void);

/* The paths of the libraries that handed their NVTX calls to the agent, one a line. Returns the bytes needed, without
 * the NUL; writes at most `size` of them, NUL included. */
uint64_t warpline_attached(char *paths, uint64_t size);

/* For warpline.nvtx: ranges of code that can suspend. Tasks are numbered from 1; 0 means none. */
struct nvtxEventAttributes_v2;
struct nvtxDomainRegistration_st;
typedef struct WarplineTasks {
  uint64_t size; /* of this structure */
  /* A new task and the range that it is part of (an id from `start` or from NVTX, 0 = none); `library` is asyncio, trio,
   * generator, … Returns its number, 0 when it cannot be recorded. */
  uint32_t (*create)(const char *name, const char *library, uint64_t parent);
  /* What the calling thread records from here on belongs to `task`. Costs a record when it differs from the last one. */
  void (*enter)(uint32_t task);
  /* nvtxDomainRangeStartEx within a task and a parent range; ends as any other. */
  uint64_t (*start)(struct nvtxDomainRegistration_st *domain, const struct nvtxEventAttributes_v2 *event,
                    uint32_t task, uint64_t parent);
  /* Another number whenever recording begins or ends, and in a fork child; task numbers hold while it stays. May be null:
   * then it never changes. */
  const uint32_t *recording;
} WarplineTasks;

/* Null when the agent does not record. */
const WarplineTasks *warpline_tasks(void);

/* Entry points that NVTX looks for (names fixed by NVTX). Recording starts when WARPLINE_SPOOL names a directory. */
int InitializeInjectionNvtx2(void *get_export_table);
int InitializeInjectionNvtx(void *get_export_table);
int InitializeInjectionNvtxExtension(void *module_info);

#ifdef __cplusplus
}
#endif
#endif
