// Writes the chunks of wide records.
#include "wide_stream.h"

#include <algorithm>
#include <utility>

#include "spool/system/clock.h"

namespace warplens {
namespace {

// GPU work is recorded if a window was open at its launch: at most this long before it began.
// Records without a time are written at most this long after the records that they belong to.
constexpr uint64_t kSlack = 2'000'000'000;

uint64_t before(uint64_t time) {
  return time > kSlack ? time - kSlack : 1;
}

// What the records of other types speak of: a flight recorder keeps it.
bool lasts(RecordType type) {
  switch (type) {
    case RecordType::cuda_graph_node:
    case RecordType::cuda_device:
    case RecordType::cuda_context:
    case RecordType::cuda_stream:
    case RecordType::cuda_notice:
    case RecordType::cuda_thread:
    case RecordType::cpu_frame:
    case RecordType::cpu_module:
    case RecordType::cpu_notice:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool WideStream::more(SpoolFile &file, RecordType type, uint16_t stride) {
  if (static_cast<size_t>(end_ - cursor) < stride) {
    cursor = ready = end_ = nullptr;
    Chunk chunk;
    if (lasts(type)) {
      // Never written anew, so no chunk has to be remembered: but those in memory have to be written.
      chunk = file.allocate_lasting(ChunkKind::wide, stride, kNoThread, next_chunk_, type);
      if (chunk) {
        file.retire(std::exchange(lasting_, chunk));
      }
    } else {
      chunk = ring_.next(file, ChunkKind::wide, stride, kNoThread, 0, next_chunk_, type);
      since = 0;
      if (file.keep_ns() != 0 && chunk) {
        reach_back(now_ns(file.clock()));
      }
    }
    if (!chunk) {
      file.drop(type);
      return false;
    }
    next_chunk_ = std::min(next_chunk_ * 4, kLastChunk);
    cursor = window_ = chunk.contents();
    end_ = cursor + (chunk.size - sizeof(ChunkHeader)) / stride * stride;
    ready = chunk.size <= kSmallChunk ? end_ : cursor;
  }
  if (static_cast<size_t>(ready - cursor) < stride) {
    char *begin = ready;
    file.let_go(window_, begin);
    window_ = begin;
    ready = std::min(end_, begin + kWindow);
    SpoolFile::populate(begin, static_cast<size_t>(ready - begin));
  }
  return true;
}

void WideStream::reach_back(uint64_t time) {
  since = time;
  ring_.reaches_back(before(time));
}

void WideStream::shrink() {
  next_chunk_ = kPage;
}

}  // namespace warplens
