// Asynchronous copies (cp.async) for kernels on the CPU, as <cuda_pipeline.h> names them. Memory of the CPU is too near to wait for:
// each group of copies takes WARPLENS_HOST_LATENCY_NS of the environment, 0 without, and its data are not there before.
#pragma once
#include <cstdlib>
#include <cstring>
#include <utility>

#include "warplens_host.h"

namespace warplens {
namespace host {

inline Thread &self() {
  return block->threads[block->current];
}

inline std::uint64_t latency() {
  const char *text = std::getenv("WARPLENS_HOST_LATENCY_NS");
  return text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
}

}  // namespace host
}  // namespace warplens

inline void __pipeline_memcpy_async(void *to, const void *from, std::size_t bytes) {
  warplens::host::self().begun.push_back({to, from, bytes});
}

// What this thread began since the last time is a group.
inline void __pipeline_commit() {
  warplens::host::Thread &thread = warplens::host::self();
  const std::uint64_t there = thread.begun.empty() ? 0 : warplens::host::now() + warplens::host::latency();
  thread.under_way.push_back({std::exchange(thread.begun, {}), there});
}

// Waits for all groups of this thread but the latest `prior`.
inline void __pipeline_wait_prior(std::size_t prior) {
  auto &groups = warplens::host::self().under_way;
  for (; groups.size() > prior; groups.pop_front()) {
    while (warplens::host::now() < groups.front().there) warplens::host::sleep_until(groups.front().there);
    for (const auto &copy : groups.front().all) std::memcpy(copy.to, copy.from, copy.bytes);
  }
}
