// Takes the next chunk of a writer.
// A flight recorder fills chunks again whose contents are too old to keep.
#pragma once

#include "file.h"

namespace warplens {

class ChunkRing {
 public:
  //! The next chunk, the last one being full; none when there is no space. It has room for `need` bytes and `want` is its size
  //! where nothing else decides. The caller holds Busy.
  Chunk next(SpoolFile &file, ChunkKind kind, uint16_t stride, uint32_t thread, size_t need, size_t want,
             RecordType type = RecordType::none);

  //! What is written into the current chunk happened at `time`, before it was taken.
  void reaches_back(uint64_t time) { current_.since = time < current_.since ? time : current_.since; }

 private:
  Chunk current_;
  Chunk before_;  // of blobs: the last written blob may still get the offset of its follower
};

}  // namespace warplens
