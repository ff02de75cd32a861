// The part of CUPTI's ABI that the agent uses, CUDA 11.8 to 13.4, declared by us. C11 and C++.
// CUPTI fills records in its own newest layout; fields are only ever appended. So each record here is the part that all versions
// share, or ends with what came later: those fields are there from the version on that kCuptiSince… names.
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "drivers/cuda.h"
#include "drivers/cupti_functions.h"

typedef uint32_t CuptiResult;
typedef uint32_t CuptiKind;
typedef uint32_t CuptiDomain;
typedef struct CuptiSubscriber_st *CuptiSubscriber;

// What cuptiGetVersion says. Below 13.0 a separate count, since then CUDA's version and an update.
enum {
  kCupti118 = 18,  // of CUDA 12.0 too
  kCupti122 = 20,
  kCupti124 = 22,
  kCupti126 = 24,
  kCupti128 = 26,
  kCupti129 = 27,  // from here on bufferRequested may give no buffer (null); below, CUPTI can crash then
  kCupti129u1 = 28,
  kCupti130 = 130000,
  kCupti130u1 = 130001,
  kCupti131u1 = 130101,
  kCupti132 = 130200,
  kCupti133 = 130300,
  kCupti134 = 130400,
  kCupti134u1 = 130401,
};

// CuptiResult.
enum {
  kCuptiSuccess = 0,
  kCuptiInvalidParameter = 1,
  kCuptiInvalidOperation = 7,
  kCuptiMaxLimitReached = 12,  // no further record
  kCuptiNotCompatible = 14,
  kCuptiNotInitialized = 15,
  kCuptiInvalidKind = 21,
  kCuptiNotSupported = 27,
  kCuptiUmNotSupported = 28,
  kCuptiUmNotSupportedOnDevice = 29,
  kCuptiUmNotSupportedWithoutPeers = 30,
  kCuptiUmNotSupportedWithMps = 31,
  kCuptiVirtualizedDevice = 33,
  kCuptiInsufficientPrivileges = 35,
  kCuptiOldProfiler = 36,
  kCuptiMultipleSubscribers = 39,
  kCuptiVirtualizedDevicePrivileges = 40,
  kCuptiConfidentialComputing = 41,
  kCuptiMig = 43,
  kCuptiWsl = 45,
  kCuptiUnknown = 999,
};

// CuptiKind: what is recorded, and the first word of each record.
enum {
  kCuptiMemcpy = 1,
  kCuptiMemset = 2,
  kCuptiKernel = 3,  // one at a time, which slows programs down: not used
  kCuptiDriver = 4,
  kCuptiRuntime = 5,
  kCuptiDevice = 8,
  kCuptiContext = 9,
  kCuptiConcurrentKernel = 10,
  kCuptiOverhead = 17,
  kCuptiMemcpyPeer = 22,
  kCuptiUmCounter = 25,
  kCuptiCudaEvent = 36,
  kCuptiStream = 37,
  kCuptiSynchronization = 38,
  kCuptiExternal = 39,
  kCuptiMemory = 49,
  kCuptiMemoryPool = 50,
  kCuptiGraph = 51,
  kCuptiJit = 52,
};

#ifdef __cplusplus
#define WARPLENS_AT(type, field, offset) static_assert(offsetof(type, field) == offset)
#define WARPLENS_SIZE(type, size) static_assert(sizeof(type) == size)
#else
#define WARPLENS_AT(type, field, offset) _Static_assert(offsetof(type, field) == offset, #type "." #field)
#define WARPLENS_SIZE(type, size) _Static_assert(sizeof(type) == size, #type)
#endif

typedef struct CuptiActivity {
  CuptiKind kind;
} CuptiActivity;

typedef struct CuptiApiActivity {
  CuptiKind kind;
  uint32_t cbid;
  uint64_t start;
  uint64_t end;
  uint32_t pid;
  uint32_t tid;
  uint32_t correlation;
  uint32_t result;
} CuptiApiActivity;
WARPLENS_SIZE(CuptiApiActivity, 40);

typedef struct CuptiKernelActivity {
  CuptiKind kind;
  uint8_t cache_config;  // asked for in the low four bits, taken in the high ones
  uint8_t shared_config;
  uint16_t registers;
  uint32_t global_cache_requested;
  uint32_t global_cache_executed;
  uint64_t start;
  uint64_t end;
  uint64_t completed;  // with what it launched itself
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared;
  int32_t dynamic_shared;
  uint32_t local_per_thread;
  uint32_t local_total_32;  // of another width since 11.x: see local_total
  uint32_t correlation;
  int64_t grid_id;
  const char *name;  // mangled
  void *reserved;
  uint64_t queued;
  uint64_t submitted;
  uint8_t launch_type;  // 0 regular, 1 cooperative, 2 cooperative on several devices, 3 command list
  uint8_t carveout_requested;
  uint8_t carveout;
  uint8_t padding;
  uint32_t shared_executed;
  uint64_t graph_node;
  uint32_t shared_limit;
  uint32_t graph;
  void *access_policy;
  uint32_t channel;
  uint32_t channel_type;
  uint32_t cluster[3];
  uint32_t cluster_policy;
  uint64_t local_total;  // the last that all versions have: 200 bytes
} CuptiKernelActivity;
WARPLENS_AT(CuptiKernelActivity, start, 16);
WARPLENS_AT(CuptiKernelActivity, device, 40);
WARPLENS_AT(CuptiKernelActivity, grid, 52);
WARPLENS_AT(CuptiKernelActivity, block, 64);
WARPLENS_AT(CuptiKernelActivity, static_shared, 76);
WARPLENS_AT(CuptiKernelActivity, correlation, 92);
WARPLENS_AT(CuptiKernelActivity, grid_id, 96);
WARPLENS_AT(CuptiKernelActivity, name, 104);
WARPLENS_AT(CuptiKernelActivity, queued, 120);
WARPLENS_AT(CuptiKernelActivity, launch_type, 136);
WARPLENS_AT(CuptiKernelActivity, graph_node, 144);
WARPLENS_AT(CuptiKernelActivity, graph, 156);
WARPLENS_AT(CuptiKernelActivity, channel, 168);
WARPLENS_AT(CuptiKernelActivity, cluster, 176);
WARPLENS_AT(CuptiKernelActivity, local_total, 192);
WARPLENS_SIZE(CuptiKernelActivity, 200);

typedef struct CuptiMemcpyActivity {
  CuptiKind kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;  // 1: asynchronous
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint32_t runtime_correlation;
  uint32_t padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  uint32_t channel_type;
  uint8_t device_launched;  // 12.8; here only to say where `copies` is
  uint8_t padding2[3];
  uint64_t copies;  // since kCuptiSinceCopies
} CuptiMemcpyActivity;
enum { kCuptiSinceCopies = kCupti128 };
WARPLENS_AT(CuptiMemcpyActivity, bytes, 8);
WARPLENS_AT(CuptiMemcpyActivity, device, 32);
WARPLENS_AT(CuptiMemcpyActivity, correlation, 44);
WARPLENS_AT(CuptiMemcpyActivity, graph_node, 64);
WARPLENS_AT(CuptiMemcpyActivity, graph, 72);
WARPLENS_AT(CuptiMemcpyActivity, copies, 88);

typedef struct CuptiPeerCopyActivity {
  CuptiKind kind;
  uint8_t copy_kind;
  uint8_t source_kind;
  uint8_t destination_kind;
  uint8_t flags;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t source_device;
  uint32_t source_context;
  uint32_t destination_device;
  uint32_t destination_context;
  uint32_t correlation;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  uint32_t channel_type;
  uint32_t padding;
} CuptiPeerCopyActivity;
WARPLENS_AT(CuptiPeerCopyActivity, source_device, 44);
WARPLENS_AT(CuptiPeerCopyActivity, destination_device, 52);
WARPLENS_AT(CuptiPeerCopyActivity, correlation, 60);
WARPLENS_AT(CuptiPeerCopyActivity, graph_node, 72);
WARPLENS_AT(CuptiPeerCopyActivity, graph, 80);
WARPLENS_SIZE(CuptiPeerCopyActivity, 96);

typedef struct CuptiMemsetActivity {
  CuptiKind kind;
  uint32_t value;
  uint64_t bytes;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  uint16_t flags;  // 1: asynchronous
  uint16_t memory_kind;
  uint32_t padding;
  void *reserved;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  uint32_t channel_type;
  uint32_t padding2;
} CuptiMemsetActivity;
WARPLENS_AT(CuptiMemsetActivity, flags, 48);
WARPLENS_AT(CuptiMemsetActivity, memory_kind, 50);
WARPLENS_AT(CuptiMemsetActivity, graph_node, 64);
WARPLENS_SIZE(CuptiMemsetActivity, 88);

typedef struct CuptiSynchronizationActivity {
  CuptiKind kind;
  uint32_t type;  // 1 event, 2 stream waits for event, 3 stream, 4 context
  uint64_t start;
  uint64_t end;
  uint32_t correlation;
  uint32_t context;
  uint32_t stream;      // kCuptiNone where there is none
  uint32_t event;       // kCuptiNone where there is none
  uint64_t event_sync;  // these two since kCuptiSinceEventSync
  uint32_t result;
  uint32_t padding;
} CuptiSynchronizationActivity;
#define kCuptiNone UINT32_MAX
enum { kCuptiSinceEventSync = kCupti128 };
WARPLENS_AT(CuptiSynchronizationActivity, event, 36);
WARPLENS_AT(CuptiSynchronizationActivity, event_sync, 40);
WARPLENS_SIZE(CuptiSynchronizationActivity, 56);

typedef struct CuptiCudaEventActivity {
  CuptiKind kind;
  uint32_t correlation;
  uint32_t context;
  uint32_t stream;
  uint32_t event;
  uint32_t padding;
  uint32_t device;  // these since kCuptiSinceEventSync
  uint32_t padding2;
  void *reserved;
  uint64_t device_time;  // 0 unless cuptiActivityEnableCudaEventDeviceTimestamps was called
  uint64_t event_sync;
} CuptiCudaEventActivity;
WARPLENS_AT(CuptiCudaEventActivity, event, 16);
WARPLENS_AT(CuptiCudaEventActivity, device, 24);
WARPLENS_AT(CuptiCudaEventActivity, device_time, 40);
WARPLENS_SIZE(CuptiCudaEventActivity, 56);

typedef struct CuptiMemoryActivity {
  CuptiKind kind;
  uint32_t operation;  // 1 allocation, 2 release
  uint32_t memory_kind;
  uint32_t correlation;
  uint64_t address;
  uint64_t bytes;
  uint64_t time;
  uint64_t pc;
  uint32_t pid;
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  const char *name;  // of the variable, of static memory
  uint32_t asynchronous;
  uint32_t padding;
  uint32_t pool_kind;  // 0 none, 1 local, 2 imported
  uint32_t padding2;
  uint64_t pool;
  uint64_t pool_threshold;
  uint64_t pool_size;  // of a local pool; else the process that it is of
  uint64_t pool_used;
  const char *source;  // since kCuptiSinceAllocationSource: the library that allocated
} CuptiMemoryActivity;
enum { kCuptiSinceAllocationSource = kCupti126 };
WARPLENS_AT(CuptiMemoryActivity, pc, 40);
WARPLENS_AT(CuptiMemoryActivity, name, 64);
WARPLENS_AT(CuptiMemoryActivity, pool_kind, 80);
WARPLENS_AT(CuptiMemoryActivity, pool, 88);
WARPLENS_AT(CuptiMemoryActivity, pool_used, 112);
WARPLENS_AT(CuptiMemoryActivity, source, 120);
WARPLENS_SIZE(CuptiMemoryActivity, 128);

typedef struct CuptiMemoryPoolActivity {
  CuptiKind kind;
  uint32_t operation;  // 1 created, 2 destroyed, 3 trimmed
  uint32_t pool_kind;
  uint32_t correlation;
  uint32_t pid;
  uint32_t device;
  uint64_t bytes_to_keep;
  uint64_t address;
  uint64_t size;
  uint64_t threshold;
  uint64_t time;
  uint64_t used;
} CuptiMemoryPoolActivity;
WARPLENS_AT(CuptiMemoryPoolActivity, address, 32);
WARPLENS_AT(CuptiMemoryPoolActivity, time, 56);
WARPLENS_SIZE(CuptiMemoryPoolActivity, 72);

typedef struct CuptiExternalActivity {
  CuptiKind kind;
  uint32_t external_kind;  // 1 unknown, 2 OpenACC, 3 to 5 custom
  uint64_t external;
  uint32_t correlation;
  uint32_t reserved;
} CuptiExternalActivity;
WARPLENS_SIZE(CuptiExternalActivity, 24);

// Whom something is about, by the object kind before it.
enum { kCuptiObjectThread = 2, kCuptiObjectDevice = 3, kCuptiObjectContext = 4, kCuptiObjectStream = 5 };

typedef struct CuptiOverheadActivity {
  CuptiKind kind;
  uint32_t overhead_kind;
  uint32_t object_kind;
  uint32_t object[3];  // process and thread, or device, context and stream
  uint64_t start;
  uint64_t end;
  uint32_t correlation;  // since kCuptiSinceOverheadCorrelation
  uint32_t reserved;
  const void *data;
} CuptiOverheadActivity;
enum { kCuptiSinceOverheadCorrelation = kCupti124 };
WARPLENS_AT(CuptiOverheadActivity, object, 12);
WARPLENS_AT(CuptiOverheadActivity, start, 24);
WARPLENS_AT(CuptiOverheadActivity, correlation, 40);
WARPLENS_SIZE(CuptiOverheadActivity, 56);

typedef struct CuptiGraphActivity {
  CuptiKind kind;
  uint32_t correlation;
  uint64_t start;
  uint64_t end;
  uint32_t device;
  uint32_t graph;
  uint32_t context;
  uint32_t stream;
  void *reserved;
} CuptiGraphActivity;
WARPLENS_AT(CuptiGraphActivity, device, 24);
WARPLENS_SIZE(CuptiGraphActivity, 48);

typedef struct CuptiUmActivity {
  CuptiKind kind;
  uint32_t counter;
  uint64_t value;
  uint64_t start;
  uint64_t end;
  uint64_t address;
  uint32_t source;
  uint32_t destination;
  uint32_t stream;
  uint32_t pid;
  uint32_t flags;
  uint32_t padding;
} CuptiUmActivity;
WARPLENS_AT(CuptiUmActivity, source, 40);
WARPLENS_AT(CuptiUmActivity, flags, 56);
WARPLENS_SIZE(CuptiUmActivity, 64);

typedef struct CuptiJitActivity {
  CuptiKind kind;
  uint32_t entry;      // 1 PTX to cubin, 2 NVVM IR to PTX
  uint32_t operation;  // 1 load from the cache, 2 store into it, 3 compile
  uint32_t device;
  uint64_t start;
  uint64_t end;
  uint32_t correlation;
  uint32_t padding;
  uint64_t operation_correlation;
  uint64_t cache_size;
  const char *cache_path;
  uint32_t pid;  // these two since kCuptiSinceJitThread
  uint32_t tid;
} CuptiJitActivity;
enum { kCuptiSinceJitThread = kCupti124 };
WARPLENS_AT(CuptiJitActivity, correlation, 32);
WARPLENS_AT(CuptiJitActivity, cache_path, 56);
WARPLENS_AT(CuptiJitActivity, tid, 68);
WARPLENS_SIZE(CuptiJitActivity, 72);

typedef struct CuptiDeviceActivity {
  CuptiKind kind;
  uint32_t flags;
  uint64_t memory_bandwidth;  // kB/s
  uint64_t memory;
  uint32_t constant_memory;
  uint32_t l2_size;
  uint32_t warp_threads;
  uint32_t clock;  // kHz
  uint32_t copy_engines;
  uint32_t multiprocessors;
  uint32_t limits[14];  // of what runs at a time
  uint32_t major, minor;
  uint32_t device;
  uint32_t ecc;
  CudaUuid uuid;
  const char *name;
  uint8_t visible;
  uint8_t mig;
  uint8_t padding[6];
  uint32_t gpu_instance;
  uint32_t compute_instance;
  CudaUuid mig_uuid;
} CuptiDeviceActivity;
WARPLENS_AT(CuptiDeviceActivity, clock, 36);
WARPLENS_AT(CuptiDeviceActivity, major, 104);
WARPLENS_AT(CuptiDeviceActivity, device, 112);
WARPLENS_AT(CuptiDeviceActivity, uuid, 120);
WARPLENS_AT(CuptiDeviceActivity, name, 136);
WARPLENS_SIZE(CuptiDeviceActivity, 176);

typedef struct CuptiContextActivity {
  CuptiKind kind;
  uint32_t context;
  uint32_t device;
  uint16_t api;  // 1 CUDA, 2 CUDA through MPS
  uint16_t null_stream;
} CuptiContextActivity;
WARPLENS_SIZE(CuptiContextActivity, 16);

typedef struct CuptiStreamActivity {
  CuptiKind kind;
  uint32_t context;
  uint32_t stream;
  uint32_t priority;
  uint32_t flag;  // 1 default, 2 non-blocking, 3 null
  uint32_t correlation;
} CuptiStreamActivity;
WARPLENS_SIZE(CuptiStreamActivity, 24);

typedef struct CuptiUmConfig {
  uint32_t scope;  // 1 one device, 2 all devices
  uint32_t kind;
  uint32_t device;
  uint32_t enable;
} CuptiUmConfig;
WARPLENS_SIZE(CuptiUmConfig, 16);

enum {
  kCuptiUmHostToDevice = 1,
  kCuptiUmDeviceToHost = 2,
  kCuptiUmCpuFaults = 3,
  kCuptiUmGpuFaults = 4,
  kCuptiUmThrashing = 5,
  kCuptiUmThrottling = 6,
  kCuptiUmRemoteMap = 7,
  kCuptiUmDeviceToDevice = 8,
};

// Of cuptiActivitySetAttribute.
enum {
  kCuptiDeviceBufferSize = 0,
  kCuptiDeviceBufferPoolLimit = 2,
  kCuptiZeroedOutBuffer = 5,  // uint8_t: bufferRequested gives zeroed memory
  kCuptiPerThreadBuffer = 9,  // uint8_t
  // Of cuptiActivitySetAttribute_v2, where there are several subscribers.
  kCuptiAllocationSource = 14,   // uint8_t
  kCuptiEventTimes = 17,         // uint8_t
  kCuptiSeveralGraphTrace = 20,  // uint8_t, for all of them
  kCuptiThreadIdType = 21,       // uint32_t
  kCuptiTimestamps = 22,         // CuptiTimestampCallback
};
enum { kCuptiThreadIdSystem = 1 };
enum { kCuptiFlushForced = 1 };

// CuptiDomain: the origin of a callback.
enum {
  kCuptiDriverApi = 1,
  kCuptiRuntimeApi = 2,
  kCuptiResource = 3,
  kCuptiState = 6,
};

// Of CuptiCallbackData::site.
enum { kCuptiEnter = 0, kCuptiExit = 1 };

// Callbacks by domain. Functions have the same numbers in all versions.
enum {
  kCuptiDeviceGetCount = 4,  // kCuptiDriverApi
  kCuptiCtxDestroy = 11,
  kCuptiCtxDestroyV2 = 322,
  kCuptiProfilerStart = 308,
  kCuptiProfilerStop = 309,
  kCuptiPrimaryCtxRelease = 387,
  kCuptiPrimaryCtxReleaseV2 = 544,
  kCuptiPrimaryCtxReset = 389,
  kCuptiPrimaryCtxResetV2 = 545,
  kCuptiGreenCtxDestroy = 744,
  kCuptiRuntimeThreadExit = 123,  // kCuptiRuntimeApi: an old name of cudaDeviceReset
  kCuptiRuntimeDeviceReset = 164,
  kCuptiRuntimeProfilerStart = 171,
  kCuptiRuntimeProfilerStop = 172,
};
enum {  // kCuptiResource
  kCuptiContextCreated = 1,
  kCuptiContextDestroyStarting = 2,
  kCuptiStreamCreated = 3,
  kCuptiStreamDestroyStarting = 4,
  kCuptiModuleLoaded = 6,
  kCuptiModuleUnloadStarting = 7,
  kCuptiGraphNodeCreated = 13,
  kCuptiGraphNodeCloned = 20,
};
enum {  // kCuptiState
  kCuptiFatalError = 1,
};

// Of kCuptiDriverApi and kCuptiRuntimeApi.
typedef struct CuptiCallbackData {
  uint32_t site;
  const char *function;
  const void *parameters;
  void *result;
  const char *symbol;  // of a launch: the kernel
  CudaContext context;
  uint32_t context_id;
  uint64_t *correlation_data;  // of this call alone, kept from its enter to its exit
  uint32_t correlation;
} CuptiCallbackData;
WARPLENS_AT(CuptiCallbackData, context, 40);
WARPLENS_AT(CuptiCallbackData, correlation_data, 56);
WARPLENS_AT(CuptiCallbackData, correlation, 64);

// Of kCuptiResource.
typedef struct CuptiResourceData {
  CudaContext context;
  CudaStream stream;
  void *descriptor;  // CuptiModuleData or CuptiGraphData, where it is about a module or a graph
} CuptiResourceData;
WARPLENS_SIZE(CuptiResourceData, 24);

typedef struct CuptiModuleData {
  uint32_t module;
  size_t size;
  const char *cubin;
} CuptiModuleData;

typedef struct CuptiGraphData {
  CudaGraph graph;
  CudaGraph original;
  CudaGraphNode node;
  CudaGraphNode original_node;  // of a copied node
} CuptiGraphData;
WARPLENS_AT(CuptiGraphData, original_node, 24);

// Of kCuptiState.
typedef struct CuptiStateData {
  CuptiResult result;
  const char *message;
} CuptiStateData;

// Of cuptiSubscribe_v2.
typedef struct CuptiSubscriberParams {
  size_t size;  // of this structure
  const char *name;
  char *other_name;  // gets the name of the tool that has subscribed already
  size_t other_name_size;
  uint8_t allow_several;
  uint8_t padding[7];
} CuptiSubscriberParams;
WARPLENS_SIZE(CuptiSubscriberParams, 40);

// Of the functions that end in _v2: what one of several subscribers wants of a kind; null = all of it.
typedef struct CuptiActivityConfig {
  size_t size;  // of this structure
  struct {
    size_t size;
    size_t count;
    int32_t *ids;
  } fields;
  void *options;
} CuptiActivityConfig;

typedef struct CuptiRequestInfo {
  size_t size;
} CuptiRequestInfo;

typedef struct CuptiCompleteInfo {
  size_t size;
  uint64_t thread;
  void **layouts;  // where fields were chosen
  size_t layout_count;
} CuptiCompleteInfo;

typedef void (*CuptiCallback)(void *user, CuptiDomain domain, uint32_t cbid, const void *data);
typedef uint64_t (*CuptiTimestampCallback)(void);
typedef void (*CuptiBufferRequested)(uint8_t **buffer, size_t *size, size_t *max_records);
typedef void (*CuptiBufferCompleted)(CudaContext context, uint32_t stream, uint8_t *buffer, size_t size,
                                     size_t valid);
typedef void (*CuptiBufferRequestedV2)(uint8_t **buffer, size_t *size, size_t *max_records,
                                       CuptiRequestInfo *info);
typedef void (*CuptiBufferCompletedV2)(uint8_t *buffer, size_t size, size_t valid, CuptiCompleteInfo *info);

// Found with dlsym; null where this CUPTI lacks one.
typedef struct CuptiFunctions {
#define WARPLENS_MEMBER(member, name, parameters) CuptiResult(*member) parameters;
  WARPLENS_CUPTI_REQUIRED(WARPLENS_MEMBER)
  WARPLENS_CUPTI_OPTIONAL(WARPLENS_MEMBER)
  WARPLENS_CUPTI_SEVERAL(WARPLENS_MEMBER)
#undef WARPLENS_MEMBER
} CuptiFunctions;
