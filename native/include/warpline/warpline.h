/* The agent's C ABI, for the launcher and for programs that load the agent themselves. C11. */
#ifndef WARPLINE_WARPLINE_H
#define WARPLINE_WARPLINE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 1; a launcher refuses an agent with another number. */
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

/* Entry points that NVTX looks for (names fixed by NVTX). Recording starts when WARPLINE_SPOOL names a directory. */
int InitializeInjectionNvtx2(void *get_export_table);
int InitializeInjectionNvtx(void *get_export_table);

#ifdef __cplusplus
}
#endif
#endif
