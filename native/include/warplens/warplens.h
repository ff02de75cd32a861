/* The agent's C ABI, for the launcher and for programs that load the agent themselves. C11. */
#ifndef WARPLENS_WARPLENS_H
#define WARPLENS_WARPLENS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* 7; a launcher refuses an agent with another number. */
uint32_t warplens_abi_version(void);

/* Records another process, `pid`, from outside into the spool directory: native samples and thread states, as far as the control file
 * there asks for them. Returns once it has ended or become another program, or `stop` can be read or was closed on the other side.
 * For a process that does nothing else, and calls _exit() then. 0 or an errno. */
int warplens_observe(const char *directory, int pid, int stop);

/* Reads the clocks together, bracketed so that they agree to some tens of ns:
 * out[0] the counter the agent would use, out[1] CLOCK_MONOTONIC ns, out[2] CLOCK_REALTIME ns.
 * Returns the ClockKind (0 monotonic, 1 tsc, 2 cntvct). */
uint32_t warplens_clock_sample(uint64_t out[3]);

/* What is recorded of CUDA: CudaSettings in format.h. */
typedef struct WarplensCuda {
  uint32_t flags;
  uint32_t flush_ms;
  uint32_t backtrace;
  uint32_t backtrace_ns[4];
  uint32_t reserved;
} WarplensCuda;

/* What is recorded of the CPU side: CpuSettings in format.h. */
typedef struct WarplensCpu {
  uint32_t flags;
  uint32_t backtrace;
  uint32_t python_hz;
  uint32_t native_hz;
  uint32_t stack_depth;
  uint32_t gil_threshold_ns;
  uint64_t os_threshold_ns;
  uint64_t os_backtrace_ns;
} WarplensCpu;

/* What a recording captures and how much of it it keeps; see ControlPage in format.h, whose fields these become. */
typedef struct WarplensCapture {
  uint64_t size; /* of this structure */
  uint32_t open; /* 1: the first window opens at once */
  uint32_t trigger;
  uint32_t window_limit;
  uint32_t trigger_closes;
  uint32_t any_domain;
  uint32_t filter;
  uint32_t filter_count;
  uint32_t reserved;
  uint64_t keep_ns;
  uint64_t max_bytes;
  const char *texts; /* message, domain, names of the filter: NUL-terminated each */
  uint64_t texts_size;
  WarplensCuda cuda;
  WarplensCpu cpu;
} WarplensCapture;

/* Creates the control file at `path`: clock constants from `early` (an earlier sample, some ms ago) to now, and what is to be
 * captured (null: everything, from now on). Returns 0, an errno, or E2BIG when the texts are too long. */
int warplens_control_create(const char *path, const uint64_t early[3], const WarplensCapture *capture);

/* Opens or closes a window in a mapped control file, whatever its trigger says; `cause` as in format.h. Returns the number of the
 * window (from 1) when this call did it, 0 when one was open (closed) already, -ENOSPC when there is no room for another.
 * An `open_ns` other than 0 sets the recorded begin of the window. */
int64_t warplens_window_open(void *control, uint32_t cause, uint64_t open_ns);
int64_t warplens_window_close(void *control, uint32_t cause);

/* Closes the open window and lets it begin no earlier than `span_ns` before now: only its last part is wanted. With `go_on` 1 the
 * next window begins at once. Returns the number of the window that was closed, 0 when none was open, or -ENOSPC. */
int64_t warplens_window_keep(void *control, uint32_t cause, uint64_t span_ns, uint32_t go_on);

/* Closes the open window if the process that opened it is gone, which nobody else will do. Returns as warplens_window_close does.
 * Only for a launcher that sees the pids of the program. */
int64_t warplens_window_close_abandoned(void *control);

/* Counts bytes of a file of the run that is no spool against the limit of all of them, or gives them back where `bytes` is below 0.
 * Returns 0, or 4096 where that would go over the limit; nothing is counted then. */
int warplens_control_charge(void *control, int64_t bytes);

/* cudaProfilerStart and cudaProfilerStop, for the run that records this process; they count only where its capture range says
 * so. Returns 1 when a window was opened (closed), else 0. */
int warplens_profiler_start(void);
int warplens_profiler_stop(void);

/* Says what kind of program running the file would start, "#!" lines included: a WarplensForeign of registry.h; 0 when nothing
 * speaks against preloading our stub. */
int warplens_examine_program(const char *path);

/* Says whether the layout of the CPython in this process is known, so that its stacks and its GIL can be recorded: 1 = it is, 0 = it
 * is not, or it is free-threaded, -1 = there is no CPython. */
int warplens_python_known(void);

/* Records `pairs` push/pop ranges into a scratch spool in `directory` (removed again) and returns the cost of one pair
 * in ns, or a negative errno. */
double warplens_pair_cost(const char *directory, uint32_t pairs);

/* Recording without a launcher: begins in `directory`, which holds a control page. Returns 0, EBUSY when this process
 * records already, or another errno. May be called again after warplens_stop, with another directory. */
int warplens_start(const char *directory);

/* Ends it: what comes later is not recorded, open ranges stay open. The files may then be read and removed; what threads in
 * the middle of a call still write goes nowhere. Returns 0, or ENOENT when nothing was recorded through warplens_start. */
int warplens_stop(void);

/* The paths of the libraries that handed their NVTX calls to the agent, one a line. Returns the bytes needed, without
 * the NUL; writes at most `size` of them, NUL included. */
uint64_t warplens_attached(char *paths, uint64_t size);

/* For warplens.nvtx: ranges of code that can suspend. Tasks are numbered from 1; 0 means none. */
struct nvtxEventAttributes_v2;
struct nvtxDomainRegistration_st;
typedef struct WarplensTasks {
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
} WarplensTasks;

/* Null when the agent does not record. */
const WarplensTasks *warplens_tasks(void);

/* Buffers that kernels time themselves into (docs/dev/formats/intrakernel.md). Call these at any time, from any thread: where nothing is
 * recorded they do nothing. A program tells of a launch just before it, on the thread that makes it:
 *
 *   warplens_intrakernel_store(buffer);               what the launch before wrote is still there
 *   (write the next generation into the buffer)
 *   warplens_intrakernel_launch(buffer, generation, stream, "gemm");
 *   gemm<<<..., stream>>>(...);
 */
enum { WARPLENS_INTRAKERNEL_HOST = 0, WARPLENS_INTRAKERNEL_DEVICE = 1 };
#define WARPLENS_INTRAKERNEL_ANY_STREAM \
  (~(uint64_t)0) /* it is not known: the whole context is waited for, so not while it captures */

/* A buffer, from its header on. `tags`: lines "number name", for readers; it and `name` may be null. Returns its number, from 1; 0 when it
 * cannot be taken. The memory stays there until it is unregistered; should it not, nothing but what was in it is lost. */
uint32_t warplens_intrakernel_register(uint64_t address, uint64_t bytes, uint32_t where, const char *tags,
                                       const char *name);

/* Other tags than before: compilers may have found more. They count for what is stored from now on. */
void warplens_intrakernel_tags(uint32_t buffer, const char *tags);

/* The next launch of this thread writes into the buffer. What the one before it wrote is stored now, if it was not: that waits for
 * its kernel. `stream`: a CUstream that is there until then, 0 the default one. Returns 1 when the launch is recorded. */
int warplens_intrakernel_launch(uint32_t buffer, uint32_t generation, uint64_t stream, const char *name);

/* Waits for the last launch and stores what it wrote; 0: of all buffers. */
void warplens_intrakernel_store(uint32_t buffer);

/* The same, and forgets the buffer. */
void warplens_intrakernel_unregister(uint32_t buffer);

/* Entry points that NVTX looks for (names fixed by NVTX). Recording starts when WARPLENS_SPOOL names a directory. */
int InitializeInjectionNvtx2(void *get_export_table);
int InitializeInjectionNvtx(void *get_export_table);
int InitializeInjectionNvtxExtension(void *module_info);

/* The entry point that the CUDA driver looks for, in cuInit (name fixed by it); see CUDA_INJECTION64_PATH. Returns 1. */
int InitializeInjection(void);

#ifdef __cplusplus
}
#endif
#endif
