/* In-kernel buffers of programs in C and C++ (C99, C++11): how large one is, its head, and its description for the recording.
 *
 *   warplens_shape shape = warplens_slices(64, 4, 128);    // blocks, warps of each that record, slots
 *   char head[WARPLENS_HEAD_BYTES];
 *   warplens_head(&shape, 1, head);                        // for the first launch
 *   cudaMalloc(&memory, warplens_bytes(&shape));
 *   cudaMemset(memory, 0, warplens_bytes(&shape));
 *   cudaMemcpy(memory, head, sizeof(head), cudaMemcpyHostToDevice);
 *   uint32_t buffer = warplens_register((uint64_t)memory, warplens_bytes(&shape), 1, "load, multiply", "tiles");
 *
 *   warplens_launch(buffer, 1, (uint64_t)stream, "gemm");  // just before the launch, on its thread
 *   gemm<<<64, 128, 0, stream>>>(..., memory);
 *
 *   warplens_store(buffer);                                // before the next launch into it: its head changes now
 *   warplens_head(&shape, 2, head);                        // generation 2, as the next warplens_launch will say
 *   cudaMemcpyAsync(memory, head, sizeof(head), cudaMemcpyHostToDevice, stream);
 *   ...
 *   warplens_unregister(buffer);                           // before the memory goes
 *
 * Without `warplens profile` around the program all but warplens_bytes and warplens_head does nothing. Before glibc 2.34: -ldl.
 */
#ifndef WARPLENS_PROGRAM_H
#define WARPLENS_PROGRAM_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WARPLENS_HEAD_BYTES 256
#define WARPLENS_SLICES 0 /* modes */
#define WARPLENS_CLAIM 1
#define WARPLENS_RING 2
#define WARPLENS_GLOBALTIMER 0 /* clocks: what the kernels were compiled for, from sm_90 on this one */
#define WARPLENS_CYCLES 1
#define WARPLENS_ANY_STREAM (~(uint64_t)0)

/* What may stay 0: everything from `mode` on. */
typedef struct warplens_shape {
  uint32_t units; /* slices: blocks that record, times `warps` */
  uint32_t slots; /* records of each; of a ring as many as its kernel has, a power of two */
  uint32_t warps; /* of a block that record, the first ones or those of `warp_mask` */
  uint32_t mode;
  uint32_t clock;
  uint32_t sample_blocks; /* only blocks whose number is a multiple of it record */
  uint64_t warp_mask;
} warplens_shape;

/* A place for each warp: the first `warps` of each of `blocks`. */
static inline warplens_shape warplens_slices(uint32_t blocks, uint32_t warps, uint32_t slots) {
  warplens_shape shape;
  memset(&shape, 0, sizeof(shape));
  shape.units = blocks * warps;
  shape.slots = slots;
  shape.warps = warps;
  return shape;
}

static inline uint32_t warplens_stride(const warplens_shape *shape) {
  return 64 + (shape->mode == WARPLENS_RING ? 8 : 16) * shape->slots;
}

/* Bytes of a buffer. Its memory is zeroed once, before the first launch. */
static inline uint64_t warplens_bytes(const warplens_shape *shape) {
  return WARPLENS_HEAD_BYTES + (uint64_t)shape->units * warplens_stride(shape);
}

/* Writes the head of a buffer, its first WARPLENS_HEAD_BYTES. `generation`: 1 for the first launch, another one for each. */
static inline void warplens_head(const warplens_shape *shape, uint32_t generation, void *to) {
  uint32_t words[WARPLENS_HEAD_BYTES / 4] = {0};
  words[0] = 0x4B494C57u;
  words[1] = (uint32_t)WARPLENS_HEAD_BYTES << 16 | 1;
  words[2] = shape->mode;
  words[3] = shape->clock;
  words[4] = shape->units;
  words[5] = shape->slots;
  words[6] = warplens_stride(shape);
  words[7] = shape->warps;
  words[8] = generation;
  words[9] = shape->sample_blocks == 0 ? 1 : shape->sample_blocks;
  memcpy(words + 10, &shape->warp_mask, sizeof(shape->warp_mask));
  memcpy(to, words, sizeof(words));
}

/* The agent of the recording that this process is in; null functions where there is none. */
typedef struct warplens_agent {
  uint32_t (*add)(uint64_t, uint64_t, uint32_t, const char *, const char *);
  int (*launch)(uint32_t, uint32_t, uint64_t, const char *);
  void (*store)(uint32_t);
  void (*remove)(uint32_t);
} warplens_agent;

static inline void *warplens_find_agent(void) {
  static const char *const kVariables[] = {"NVTX_INJECTION64_PATH", "WARPLENS_NVTX_CHAIN",
                                           "CUDA_INJECTION64_PATH", "WARPLENS_CUDA_CHAIN"};
  static const char kName[] = "libwarplens_agent";
  if (getenv("WARPLENS_SPOOL") == NULL) {
    return NULL;
  }
  for (unsigned i = 0; i < sizeof(kVariables) / sizeof(kVariables[0]); ++i) {
    const char *path = getenv(kVariables[i]);
    const char *slash = path == NULL ? NULL : strrchr(path, '/');
    const char *file = slash == NULL ? path : slash + 1;
    if (file != NULL && strncmp(file, kName, sizeof(kName) - 1) == 0) {
      return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
  }
  return NULL;
}

/* [MT] Threads that come first at the same time find the same. */
static inline warplens_agent warplens_agent_of_process(void) {
  static void *volatile found = NULL;
  static volatile int looked = 0;
  warplens_agent agent = {NULL, NULL, NULL, NULL};
  if (!looked) {
    found = warplens_find_agent();
    looked = 1;
  }
  if (found != NULL) { /* dlsym gives void *, which C does not call a function: copied byte by byte */
    void *symbols[4];
    symbols[0] = dlsym(found, "warplens_intrakernel_register");
    symbols[1] = dlsym(found, "warplens_intrakernel_launch");
    symbols[2] = dlsym(found, "warplens_intrakernel_store");
    symbols[3] = dlsym(found, "warplens_intrakernel_unregister");
    memcpy(&agent.add, &symbols[0], sizeof(void *));
    memcpy(&agent.launch, &symbols[1], sizeof(void *));
    memcpy(&agent.store, &symbols[2], sizeof(void *));
    memcpy(&agent.remove, &symbols[3], sizeof(void *));
  }
  return agent;
}

/* "load, multiply" becomes "0 load\n1 multiply\n", which is what the agent takes; null where there is no memory. */
static inline char *warplens_numbered(const char *names) {
  size_t count = 1;
  for (const char *at = names; *at != '\0'; ++at) {
    count += *at == ',';
  }
  char *out = (char *)malloc(strlen(names) + 12 * count + 1);
  char *to = out;
  for (size_t number = 0; out != NULL && *names != '\0'; ++number) {
    size_t length;
    char digits[12];
    size_t digit = sizeof(digits);
    size_t rest = number;
    names += strspn(names, " \t\n,");
    length = strcspn(names, ",");
    do {
      digits[--digit] = (char)('0' + rest % 10);
      rest /= 10;
    } while (rest != 0);
    memcpy(to, digits + digit, sizeof(digits) - digit);
    to += sizeof(digits) - digit;
    *to++ = ' ';
    memcpy(to, names, length);
    to += length;
    *to++ = '\n';
    names += length;
  }
  if (out != NULL) {
    *to = '\0';
  }
  return out;
}

/* A buffer of a recording; returns its number, 0 where nothing records. `names`: the tags in their order, with commas between, as in
 * WARPLENS_TAGS, or lines `number name`. */
static inline uint32_t warplens_register(uint64_t address, uint64_t bytes, int on_device, const char *names,
                                         const char *name) {
  warplens_agent agent = warplens_agent_of_process();
  uint32_t number;
  char *lines;
  if (agent.add == NULL) {
    return 0;
  }
  lines = names == NULL || (*names >= '0' && *names <= '9') ? NULL : warplens_numbered(names);
  number = agent.add(address, bytes, on_device ? 1 : 0, lines != NULL ? lines : names, name);
  free(lines);
  return number;
}

/* The next launch of this thread records into the buffer, in whose head this generation stands. `stream`: a CUstream, 0 the default
 * one, WARPLENS_ANY_STREAM where it is not known. Returns 1 where that is recorded. */
static inline int warplens_launch(uint32_t buffer, uint32_t generation, uint64_t stream, const char *name) {
  warplens_agent agent = warplens_agent_of_process();
  return buffer != 0 && agent.launch != NULL ? agent.launch(buffer, generation, stream, name) : 0;
}

/* Waits for the last launch and stores what it recorded. */
static inline void warplens_store(uint32_t buffer) {
  warplens_agent agent = warplens_agent_of_process();
  if (buffer != 0 && agent.store != NULL) {
    agent.store(buffer);
  }
}

/* The same, and forgets the buffer. */
static inline void warplens_unregister(uint32_t buffer) {
  warplens_agent agent = warplens_agent_of_process();
  if (buffer != 0 && agent.remove != NULL) {
    agent.remove(buffer);
  }
}

#endif
