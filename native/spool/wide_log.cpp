// The chunks of wide records.
#include "wide_log.h"

#include <utility>

#include "clock.h"

namespace warpline {
namespace {

// GPU work is asked for when a window was open as it was launched: so long before it began, at most. Other types have no time of
// their own: so long after what they belong to, at most, are they written.
constexpr uint64_t kSlack = 2'000'000'000;

uint64_t before(uint64_t time) {
  return time > kSlack ? time - kSlack : 1;
}

// What the records of other types speak of: a flight recorder keeps it.
bool lasts(RecordType type) {
  switch (type) {
    case RecordType::cuda_device:
    case RecordType::cuda_context:
    case RecordType::cuda_stream:
    case RecordType::cuda_notice:
    case RecordType::cuda_thread:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool WideLog::more(Stream &stream, RecordType type, uint16_t stride) {
  auto left = static_cast<size_t>(stream.end - stream.cursor);
  if (left < stride) {
    stream.cursor = stream.ready = stream.end = nullptr;
    Chunk chunk;
    if (lasts(type)) {
      // Never written anew, so no chunk has to be remembered: but those in memory have to be written.
      chunk = file_.allocate(ChunkKind::wide, stride, kNoThread, stream.next_chunk, type);
      if (chunk) {
        file_.retire(std::exchange(stream.lasting, chunk));
      }
    } else {
      chunk = stream.ring.next(file_, ChunkKind::wide, stride, kNoThread, 0, stream.next_chunk, type);
      stream.since = 0;
      if (file_.keep_ns() != 0 && chunk) {
        reach_back(stream, now_ns(file_.clock()));
      }
    }
    if (!chunk) {
      file_.drop(type);
      return false;
    }
    stream.next_chunk = std::min(stream.next_chunk * 4, kLastChunk);
    stream.cursor = chunk.contents();
    stream.end = stream.cursor + (chunk.size - sizeof(ChunkHeader)) / stride * stride;
    stream.ready = chunk.size <= kSmallChunk ? stream.end : stream.cursor;
  }
  if (static_cast<size_t>(stream.ready - stream.cursor) < stride) {
    char *begin = stream.ready;
    stream.ready = std::min(stream.end, begin + kWindow);
    SpoolFile::populate(begin, static_cast<size_t>(stream.ready - begin));
  }
  return true;
}

void WideLog::reach_back(Stream &stream, uint64_t time) {
  stream.since = time;
  stream.ring.reaches_back(before(time));
}

}  // namespace warpline
