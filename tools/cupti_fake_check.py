"""Reads the output of the tests' fake CUPTI with the real headers' structures, for `make cupti-abi`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tests.support.native.fake_cuda import VERSIONS, FakeCuda, truth  # noqa: E402 - the tests are no package of ours

WORDS = (
    "malloc:4096 kernel:_Z1av:1000:1 h2d:4096:1 memset:7:64:1 event:1 sync_event managed:8192 pool module "
    "push:3:5 kernel:b:2000:1 pop:3"
)
WORDS += " peer:64:1 graph:1:3000:1 device_sync"

# Of each record: the structure's name without its number, CUPTI's kind, and what C++ must find true of the record `r`.
CHECKS = {
    "Kernel": (10, "r.end - r.start == (*r.name == 'b' ? 2000 : *r.name == '_' ? 1000 : 3000) && r.gridX == 128 && r.gridY == 2"
               " && r.blockX == 256 && r.dynamicSharedMemory == 64 && r.staticSharedMemory == 1024 && r.registersPerThread == 32"
               " && r.localMemoryTotal_v2 == 32768 && r.channelID == 5 && r.completed == r.end && (r.graphId != 0) == (*r.name == 'g')"
               " && (r.graphNodeId != 0) == (r.graphId != 0)"),
    "Memcpy": (1, "r.copyKind == 1 && r.srcKind == 2 && r.dstKind == 3 && r.flags == 1 && r.bytes == 4096 && r.end - r.start == 1163"),
    "MemcpyPtoP": (22, "r.copyKind == 10 && r.bytes == 64 && r.srcDeviceId == 0 && r.dstDeviceId == 1 && r.correlationId != 0"),
    "Memset": (2, "r.value == 7 && r.bytes == 64 && r.memoryKind == 3 && r.flags == 1 && r.end - r.start == 800"),
    "Synchronization": (38, "(r.type == 1) == (r.cudaEventId != 0xffffffff) && r.end >= r.start && r.contextId == 1"),
    "Memory": (49, "r.memoryOperationType == 1 && (r.bytes == 4096 ? r.memoryKind == 3 : r.memoryKind == 5) && r.timestamp != 0"),
    "MemoryPool": (50, "r.memoryPoolOperationType >= 1 && r.memoryPoolOperationType <= 3 && r.releaseThreshold == 1048576 && r.timestamp"),
    "ExternalCorrelation": (39, "r.externalKind == 3 && r.externalId == 5 && r.correlationId != 0"),
    "Overhead": (17, "r.objectKind == 2 && r.objectId.pt.processId != 0 && r.end >= r.start && r.start != 0"),
    "CudaEvent": (36, "r.contextId == 1 && r.eventId == 1 && r.correlationId != 0"),
    "Device": (8, "r.coreClockRate == 1980000 && r.numMultiprocessors == 132 && r.computeCapabilityMajor == 9 && r.l2CacheSize == 62914560"
               " && r.name[0] == 'F' && (unsigned char)r.uuid.bytes[0] == 0xa0 + 16 * r.id && r.maxThreadsPerBlock == 1024"),
    "Context": (9, "r.contextId == r.deviceId + 1 && r.computeApiKind == 1 && r.nullStreamId != 0"),
    "Stream": (37, "r.flag == (r.streamId == 7 || r.contextId == 2 ? 3 : 2)"),
    "Jit": (52, "r.jitEntryType == 1 && r.jitOperationType == 3 && r.cacheSize == 4096 && r.end > r.start"),
}  # fmt: skip


def dump(version: str, folder: Path, include: list[str]) -> Path:
    """Build the program and a tool that reads records with the real headers; run them; the tool's output."""
    fake = FakeCuda(version)
    program, tool = folder / "program", folder / "tool.so"
    targets = ROOT / "tests" / "targets"
    subprocess.run(
        ["gcc", "-O1", targets / "cuda" / "cuda_program.c", *fake.words(), "-o", program, "-pthread"],
        check=True,
    )
    subprocess.run(
        [
            "g++",
            "-std=c++20",
            "-w",
            "-O0",
            "-g",
            "-shared",
            "-fPIC",
            *include,
            folder / "tool.cpp",
            "-o",
            tool,
        ],
        check=True,
    )
    made = fake.environment(truth=folder / "truth", agent=tool)
    # Names and strings that records point to are there only while the program runs: the tool checks in it.
    subprocess.run(
        [program, *WORDS.split()],
        env=os.environ | made | {"OUT": str(folder / "out"), "TRUTH": str(folder / "said")},
        check=True,
    )
    return folder / "out"


def source(structures: dict[str, str]) -> str:
    """The tool: every record is looked at through its real structure."""
    cases, kinds = [], []
    for name, (kind, condition) in CHECKS.items():
        if name in structures:
            real = structures[name]
            cases.append(
                f"case {kind}: {{ const {real} &r = *reinterpret_cast<const {real} *>(record); "
                f'say("{name}", sizeof(r) == size && ({condition}), sizeof(r), size); break; }}'
            )
            kinds.append(str(kind))
    return f"""
#include <cupti.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <initializer_list>
static std::FILE *g_out;
static void say(const char *name, bool right, size_t real, size_t size) {{
  std::fprintf(g_out, "%s %s %zu %zu\\n", name, right ? "right" : "wrong", real, size);
  std::fflush(g_out);
}}
static void look(const uint8_t *record, size_t size) {{
  switch (reinterpret_cast<const CUpti_Activity *>(record)->kind) {{
    {" ".join(cases)}
    default: break;
  }}
}}
static void request(uint8_t **buffer, size_t *size, size_t *most) {{
  *buffer = static_cast<uint8_t *>(std::calloc(1, *size = 1 << 20));
  *most = 0;
}}
static void complete(CUcontext, uint32_t, uint8_t *buffer, size_t, size_t valid) {{
  CUpti_Activity *record = nullptr, *before = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {{
    if (before) look((uint8_t *)before, (uint8_t *)record - (uint8_t *)before);
    before = record;
  }}
  if (before) look((uint8_t *)before, buffer + valid - (uint8_t *)before);
}}
static void leave() {{ cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED); }}
static uint64_t now() {{
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}}
static void called(void *, CUpti_CallbackDomain, CUpti_CallbackId id, const void *data) {{
  const CUpti_CallbackData &call = *static_cast<const CUpti_CallbackData *>(data);
  if (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel && call.callbackSite == CUPTI_API_ENTER) {{
    say("CallbackData", call.symbolName && call.correlationId && call.contextUid == 1 && call.context && call.correlationData &&
        !std::strcmp(call.functionName, "cuLaunchKernel"), 0, 0);
  }}
}}
extern "C" int InitializeInjection() {{
  g_out = std::fopen(std::getenv("OUT"), "w");
  CUpti_SubscriberHandle handle;
  cuptiActivityRegisterTimestampCallback(now);
  if (cuptiSubscribe(&handle, called, nullptr) != CUPTI_SUCCESS) return 0;
  cuptiEnableCallback(1, handle, CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
  cuptiActivityRegisterCallbacks(request, complete);
  for (int kind : {{{", ".join(kinds)}, 4, 5}}) cuptiActivityEnable((CUpti_ActivityKind)kind);
  std::atexit(leave);
  return 1;
}}
"""


def check(minor: str, structures: dict[str, str], include: list[str]) -> bool:
    """Whether every record of the look-alike of this version is what the real headers say.

    True where there is none of it.
    """
    if minor not in VERSIONS:
        return True
    with tempfile.TemporaryDirectory(prefix="cupti-fake-") as name:
        folder = Path(name)
        (folder / "tool.cpp").write_text(source(structures), encoding="utf-8")
        lines = [
            line.split() for line in dump(minor, folder, include).read_text(encoding="utf-8").splitlines()
        ]
        kernels = sum(line["what"] == "kernel" for line in truth(folder / "truth"))
    wrong = [line for line in lines if line[1] != "right"]
    lacking = sorted(set(structures) & set(CHECKS) - {line[0] for line in lines})
    for line in wrong:
        print(f"the look-alike's {line[0]} is wrong; its size is {line[3]}, NVIDIA's {line[2]}")
    if lacking:
        print(f"the look-alike gave no {', '.join(lacking)}")
    if sum(line[0] == "Kernel" for line in lines) != kernels:
        print("the look-alike lost kernels")
        return False
    print(f"  the look-alike {minor}: {len(lines)} records, {len(wrong)} wrong")
    return not wrong and not lacking
