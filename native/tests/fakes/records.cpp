// The sizes of activity records. Their fields are written where they are known: gpu.cpp, callbacks.cpp, memory.cpp, graphs.cpp.
#include "fake.h"

namespace fake {
namespace {

// Bytes in 11.8, 12.4, 13.0 and 13.4.
struct Size {
  uint32_t kind;
  uint16_t bytes[4];
};

constexpr Size kSizes[] = {
    {kKernel, {200, 208, 216, 248}}, {kKernelSerial, {200, 208, 216, 248}},
    {kMemcpy, {88, 88, 96, 112}},    {kMemcpyPeer, {96, 96, 96, 96}},
    {kMemset, {88, 88, 88, 104}},    {kDriver, {40, 40, 40, 40}},
    {kRuntime, {40, 40, 40, 40}},    {kSync, {40, 40, 56, 56}},
    {kMemory, {120, 120, 128, 128}}, {kMemoryPool, {72, 72, 80, 80}},
    {kExternal, {24, 24, 24, 24}},   {kOverhead, {40, 56, 56, 56}},
    {kGraphTrace, {48, 56, 56, 56}}, {kCudaEvent, {24, 24, 56, 56}},
    {kUm, {64, 64, 104, 104}},       {kDevice, {176, 184, 184, 192}},
    {kContext, {16, 24, 32, 40}},    {kStream, {24, 24, 24, 24}},
    {kJit, {64, 72, 72, 72}},        {kUnknown, {48, 48, 48, 48}},
};

}  // namespace

size_t record_size(uint32_t kind) {
  size_t version = kVersion.toolkit >= 1304   ? 3
                   : kVersion.toolkit >= 1300 ? 2
                   : kVersion.toolkit >= 1204 ? 1
                                              : 0;
  for (const Size &size : kSizes) {
    if (size.kind == kind) {
      return size.bytes[version];
    }
  }
  return 0;
}

}  // namespace fake
