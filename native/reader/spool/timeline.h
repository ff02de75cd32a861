// The handle behind the functions `events_…`: the events of one process, and its state.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "reader/door.h"
#include "reader/spool/blobs.h"
#include "reader/spool/events.h"
#include "reader/spool/slice.h"

namespace warplens::reader {

class Timeline {
 public:
  explicit Timeline(const Layout &layout) : events(layout) {}

  Events events;
  BlobReader blobs;
  std::unique_ptr<Slicer> slicing;  // once the keys are set

  // What makes rows. Throws before the keys are set.
  Slicer &slicer() const {
    if (slicing == nullptr) {
      throw std::invalid_argument("the keys of the process are not set");
    }
    return *slicing;
  }

  // The mapped file from its beginning. Throws where it ends before what was read of it.
  const uint8_t *base(const Array<const uint8_t> &file) const {
    if (file.size < read_) {
      throw std::invalid_argument("the file is shorter than what was read of it");
    }
    return file.data;
  }
  void note_read(const Array<const uint8_t> &file, uint64_t offset, uint64_t bytes) {
    if (offset > file.size || bytes > file.size - offset) {
      throw std::invalid_argument("the chunk lies outside of the file");
    }
    note_chunk(offset, bytes);
  }
  void note_chunk(uint64_t offset, uint64_t bytes) {
    if (offset > UINT64_MAX - bytes) {
      throw std::invalid_argument("the chunk lies outside of any file");
    }
    read_ = std::max(read_, offset + bytes);
  }

 private:
  uint64_t read_ = 0;  // where what was read ends
};

}  // namespace warplens::reader
