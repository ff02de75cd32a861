// A client of NVTX made by hand: tables and slots of sizes and versions that no header has, to see that the agent fills what is
// there and nothing else. Also the calls whose headers need CUDA's. argv[1]: the agent.
#define _GNU_SOURCE
#include <dlfcn.h>
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>
#include <stdio.h>
#include <string.h>
#include <wchar.h>

enum { MODULES = 7, MOST = 20, SLOTS = 40 };
#define UNTOUCHED ((intptr_t)0x5a5a)

static NvtxFunctionPointer functions[MODULES][MOST];
static NvtxFunctionPointer *tables[MODULES][MOST];
static unsigned sizes[MODULES] = {0, 16, 9, 15, 7, 16, 7};
static unsigned version_set;

static int get_table(NvtxCallbackModule module, NvtxFunctionTable *table, unsigned *size) {
  if ((int)module <= 0 || (int)module >= MODULES || sizes[module] == 0) {
    return 0;
  }
  *table = tables[module];
  *size = sizes[module];
  return 1;
}

static void set_version(uint32_t version) {
  version_set = version;
}

static const void *export_table(uint32_t id) {
  static const NvtxExportTableCallbacks callbacks = {sizeof(callbacks), get_table};
  static const NvtxExportTableVersionInfo version = {sizeof(version), 3, 0, set_version};
  return id == NVTX_ETID_CALLBACKS     ? (const void *)&callbacks
         : id == NVTX_ETID_VERSIONINFO ? (const void *)&version
                                       : NULL;
}

static intptr_t slots[SLOTS];
typedef int (*Extend)(void *);

// Asks for one module; prints which slots were filled, and which behind the end were written.
static void ask(Extend extend, uint16_t module, uint16_t compat, size_t count, uint16_t struct_size) {
  struct {
    nvtxExtModuleInfo_t info;
    char more[32];
  } whole;
  memset(&whole, 0x5a, sizeof(whole));
  nvtxExtModuleSegment_t segment = {0, count, slots};
  whole.info = (nvtxExtModuleInfo_t){3, struct_size, module, compat, 1, &segment, NULL, NULL};
  for (int i = 0; i < SLOTS; ++i) {
    slots[i] = UNTOUCHED;
  }
  int result = extend(&whole.info);
  printf("module %u compat %#x: %d, filled", module, compat, result);
  for (int i = 0; i < SLOTS; ++i) {
    if (slots[i] != UNTOUCHED) {
      printf(" %d", i);
    }
  }
  printf("\n");
}

#define CALL(module, id, type, ...) ((type)functions[module][id])(__VA_ARGS__)
#define SLOT(id, type, ...) ((type)slots[id])(__VA_ARGS__)
typedef void (*NameDevice)(int, const char *);
typedef void (*NameDeviceW)(int, const wchar_t *);
typedef void (*NameHandle)(void *, const char *);
typedef void (*NameHandleW)(void *, const wchar_t *);
typedef struct nvtxMemPermissions_v1 *Permissions;

int main(int argc, char **argv) {
  (void)argc;
  void *agent = dlopen(argv[1], RTLD_NOW);
  if (agent == NULL) {
    printf("%s\n", dlerror());
    return 1;
  }
  int (*initialize)(void *) = (int (*)(void *))dlsym(agent, "InitializeInjectionNvtx2");
  Extend extend = (Extend)dlsym(agent, "InitializeInjectionNvtxExtension");
  for (int module = 0; module < MODULES; ++module) {
    for (int i = 1; i < MOST; ++i) {
      tables[module][i] = &functions[module][i];
    }
  }
  int initialized = initialize((void *)export_table);
  printf("initialized %d, version %u\n", initialized, version_set);
  for (int module = 1; module < MODULES; ++module) {
    printf("callbacks %d:", module);
    for (int i = 0; i < MOST; ++i) {
      if (functions[module][i] != NULL) {
        printf(" %d", i);
      }
    }
    printf("\n");
  }
  // An old client: shorter tables, a table that is missing, holes in one.
  memset(functions, 0, sizeof(functions));
  sizes[5] = 8;
  sizes[2] = 0;
  tables[1][2] = NULL;
  printf("old client %d, pop beyond the end %d\n", initialize((void *)export_table), functions[5][8] != NULL);
  sizes[5] = 16;
  sizes[2] = 9;
  printf("null %d\n", initialize(NULL));
  initialize((void *)export_table);

  CALL(2, 1, NameDevice, 0, "gpu zero");
  CALL(2, 2, NameDeviceW, 1, L"gpu w\u00efde");
  CALL(2, 3, NameHandle, (void *)0x10, "context");
  CALL(2, 4, NameHandleW, (void *)0x11, L"context w");
  CALL(2, 5, NameHandle, (void *)0x20, "stream");
  CALL(2, 6, NameHandleW, (void *)0x21, L"stream w");
  CALL(2, 7, NameHandle, (void *)0x30, "event");
  CALL(2, 8, NameHandleW, (void *)0x31, NULL);
  CALL(4, 1, NameDevice, 0, "renamed");
  CALL(4, 2, NameDeviceW, -1, L"none");
  CALL(4, 3, NameHandle, (void *)0x22, "rt stream");
  CALL(4, 4, NameHandleW, (void *)0x23, L"rt stream w");
  CALL(4, 5, NameHandle, (void *)0x32, "rt event");
  CALL(4, 6, NameHandleW, (void *)0x33, L"rt event w");
  for (int i = 1; i < 14; i += 2) {
    CALL(3, i, NameHandle, (void *)(uintptr_t)(0x100 + i), "cl");
    CALL(3, i + 1, NameHandleW, (void *)(uintptr_t)(0x101 + i), L"cl w");
  }

  ask(extend, 3, 0x0100, SLOTS, sizeof(nvtxExtModuleInfo_t));  // no such module
  ask(extend, 2, 0x0104, SLOTS, 8);                            // a structure that is too short
  printf("null %d\n", extend(NULL));
  ask(extend, 2, 0x0103, 8, sizeof(nvtxExtModuleInfo_t) - 8);  // old, and without extInfo
  ask(extend, 4, 0x0999, SLOTS, sizeof(nvtxExtModuleInfo_t) + 32);
  ask(extend, 1, 0x0102, SLOTS, sizeof(nvtxExtModuleInfo_t));
  Permissions process = SLOT(13, Permissions (*)(void *), NULL);
  Permissions device = SLOT(14, Permissions (*)(void *, int), NULL, 1);
  SLOT(15, void (*)(void *, Permissions, int, uint32_t), NULL, device, 2, 3);
  nvtxMemVirtualRangeDesc_t range = {4096, (void *)0x7000};
  struct {
    uint16_t compat, size;
    uint32_t type;
    size_t count, element_size;
    const void *elements;
  } batch = {0x0102, sizeof(batch), NVTX_MEM_TYPE_VIRTUAL_ADDRESS, 1, sizeof(range), &range};
  SLOT(16, void (*)(void *, void *, uint8_t, const void *), NULL, NULL, 0, &batch);
  struct {
    uint16_t compat, size;
    uint32_t reserved;
    const void *array;
    size_t offset[3], extent[3];
  } array = {0x0102, sizeof(array), 0, (void *)0x9000, {0, 1, 2}, {4, 5, 6}};
  nvtxMemRegionHandle_t handle = NULL;
  nvtxMemRegionsRegisterBatch_t regions = {0x0102, sizeof(regions), 0x11,   NULL,
                                           1,      sizeof(array),   &array, &handle};
  SLOT(3, void (*)(void *, const void *), NULL, &regions);
  // Null pointers, and batches that say they have elements but do not.
  regions.regionDescElements = NULL;
  SLOT(3, void (*)(void *, const void *), NULL, &regions);
  for (int i = 3; i <= 7; ++i) {
    SLOT(i, void (*)(void *, const void *), NULL, NULL);
  }
  printf("handles %d %d %d\n", process != NULL, device != process && device != NULL, handle != NULL);

  ask(extend, 2, 0x0204, SLOTS, sizeof(nvtxExtModuleInfo_t));
  printf("null registrations %d\n", SLOT(0, uint64_t (*)(void *, const void *), NULL, NULL) == 0 &&
                                        SLOT(1, uint64_t (*)(void *, const void *), NULL, NULL) == 0 &&
                                        SLOT(9, uint64_t (*)(void *, const void *), NULL, NULL) == 0 &&
                                        SLOT(12, uint64_t (*)(void *, const void *), NULL, NULL) == 0);
  SLOT(2, void (*)(void *, const void *, size_t), NULL, NULL, 0);
  SLOT(2, void (*)(void *, const void *, size_t), NULL, NULL, 3);
  SLOT(16, void (*)(void *, const void *, size_t), NULL, NULL, 3);
  SLOT(17, void (*)(void *, const void *), NULL, NULL);
  ask(extend, 4, 0x0102, SLOTS, sizeof(nvtxExtModuleInfo_t));
  printf("null counter %d\n", SLOT(0, uint64_t (*)(void *, const void *), NULL, NULL) == 0);
  SLOT(5, void (*)(void *, const void *), NULL, NULL);
  return 0;
}
