// Reads buffers: on a device through the driver that the program has loaded, in host memory through the kernel, which minds no address.
#pragma once

#include <cstddef>
#include <cstdint>

#include "drivers/cuda.h"

namespace warplens::agent {

// Where a buffer lies.
struct BufferPlace {
  uint64_t address;
  bool on_device;
};

//! [MT] The driver's context is current while it lives, and stream captures of other threads are not disturbed.
class BufferReader {
 public:
  //! Finds out whether the memory is there; see error().
  explicit BufferReader(const BufferPlace &place);
  ~BufferReader();
  BufferReader(const BufferReader &) = delete;
  BufferReader &operator=(const BufferReader &) = delete;

  //! 0; an errno where it is host memory, else an error of CUDA.
  int64_t error() const { return error_; }

  //! Waits until a stream has nothing left to do, or until `until_ms` (monotonic). False when it still has, or cannot be asked.
  bool await_stream(uint64_t stream, uint64_t until_ms);

  //! Waits for the whole context.
  bool await_context();

  //! Copies from the buffer.
  bool read(uint64_t offset, void *to, size_t size);

 private:
  bool failed(int32_t result);
  CudaContext retain_primary();

  BufferPlace place_;
  int64_t error_ = 0;
  int32_t retained_ = -1;  // the device whose primary context is held
  bool pushed_ = false;
  bool exchanged_ = false;
  int mode_ = 0;
};

//! [MT] Whether launches into a stream are being captured for a graph: waiting for it would spoil that.
bool is_capturing(uint64_t stream);

//! [MT] CUDA's number of the device that an address is on, -1 where that is not known.
int32_t device_of(uint64_t address);

}  // namespace warplens::agent
