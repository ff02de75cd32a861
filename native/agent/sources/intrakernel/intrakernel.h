// The parts of the in-kernel source: reading memory, packing it, storing it.
#pragma once

#include <cstdint>
#include <string>

#include "memory.h"
#include "spool/process_log.h"
#include "warplens/intrakernel_records.h"

namespace warplens::agent {

// A launch that wrote into a buffer, and that nobody has stored yet.
struct IntrakernelLaunch {
  uint32_t number = 0;  // 0: there is none
  uint32_t generation = 0;
  uint32_t recording = 0;  // ProcessLog::generation
  uint64_t stream = kAnyStream;
};

// A buffer, copied out of the list for as long as it is read.
struct IntrakernelSource {
  BufferPlace place{};
  uint64_t bytes = 0;
  std::string tags;
  IntrakernelLaunch launch;
};

//! [MT] Waits for the launch, reads what it wrote, and writes that and a record of it into the log. The caller holds nothing, not even
//! Busy. `whole_context`: as in store_intrakernel_buffers. False where it did not end in time: then nothing is written, unless `last`.
bool store_intrakernel_launch(ProcessLog &log, const IntrakernelSource &source, uint64_t until_ms,
                              bool whole_context, bool last);

//! [FORK] In a child.
void renew_intrakernel_store();

}  // namespace warplens::agent
