// Writes packed buffers into the spool, block by block.
// So it needs little memory, however large the buffer is.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "agent/source.h"
#include "intrakernel.h"
#include "pack.h"
#include "spool/blob_log.h"
#include "spool/system/clock.h"

namespace warplens::agent {
namespace {

constexpr size_t kBlock = size_t{4} << 20;
constexpr uint64_t kMost = uint64_t{2} << 30;  // bytes of a process

// The blobs of the recording that runs; callers hold the lock and Busy. In static storage and never destroyed.
struct Blobs {
  std::mutex mutex;
  uint32_t recording = 0;
  uint64_t stored = 0;
  BlobLog log;
};
alignas(Blobs) char g_storage[sizeof(Blobs)];
Blobs &blobs() {
  static Blobs *made = new (g_storage) Blobs;
  return *made;
}

// Pages that go away whatever happens.
class Staging {
 public:
  explicit Staging(size_t size) : size_(size) {
    void *pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pages_ = pages == MAP_FAILED ? nullptr : static_cast<char *>(pages);
  }
  ~Staging() {
    if (pages_ != nullptr) {
      munmap(pages_, size_);
    }
  }
  Staging(const Staging &) = delete;
  Staging &operator=(const Staging &) = delete;
  char *data() const { return pages_; }

 private:
  size_t size_;
  char *pages_;
};

class Storing {
 public:
  Storing(ProcessLog &log, const IntrakernelSource &source) : log_(log), source_(source) {
    record_.head.type = RecordType::intrakernel_read;
    record_.launch = source.launch.number;
    record_.asked = now_ns(log.clock());
    record_.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  }

  bool run(uint64_t until_ms, bool whole_context, bool last) {
    IntrakernelResult result = read(until_ms, whole_context);
    if (result == IntrakernelResult::not_awaited && (!last || captured_)) {
      return false;
    }
    finish(result);
    return true;
  }

 private:
  IntrakernelResult read(uint64_t until_ms, bool whole_context) {
    BufferReader reader(source_.place);
    if (reader.error() != 0) {
      return unreadable(reader);
    }
    uint64_t stream = source_.launch.stream;
    captured_ = source_.place.on_device && stream != kAnyStream && is_capturing(stream);
    if (captured_) {
      return IntrakernelResult::not_awaited;
    }
    bool over = stream != kAnyStream ? reader.await_stream(stream, until_ms)
                                     : whole_context && reader.await_context();
    if (!over) {
      return reader.error() != 0 ? unreadable(reader) : IntrakernelResult::not_awaited;
    }
    record_.start = now_ns(log_.clock());
    IntrakernelHead head{};
    if (source_.bytes < sizeof(head) || !reader.read(0, &head, sizeof(head))) {
      return unreadable(reader);
    }
    if (!is_intrakernel_buffer(head, source_.bytes)) {
      record_.value = head.magic;
      return IntrakernelResult::no_buffer;
    }
    record_.room = head.units;
    record_.slots = head.slots;
    constexpr uint32_t kClaim = 1;
    record_.claimed = head.mode == kClaim ? head.claimed : 0;
    return read_units(reader, head);
  }

  IntrakernelResult read_units(BufferReader &reader, const IntrakernelHead &head) {
    IntrakernelPacker packer(head, source_.launch.generation);
    size_t at_once = std::max(kBlock / head.stride, size_t{1});
    Staging staging(std::min<size_t>(at_once, std::max(head.units, 1u)) * head.stride);
    if (staging.data() == nullptr) {
      return IntrakernelResult::no_space;
    }
    auto put = [this](const char *bytes, size_t size) { return write(bytes, size); };
    bool going = true;
    for (size_t unit = 0; unit < head.units && going; unit += at_once) {
      size_t count = std::min<size_t>(at_once, head.units - unit);
      if (!reader.read(sizeof(head) + unit * head.stride, staging.data(), count * head.stride)) {
        return unreadable(reader);
      }
      going = packer.take(staging.data(), count, put);
    }
    going = going && packer.flush(put);
    record_.units = packer.found().units;
    record_.blocks = packer.found().blocks;
    record_.first_ns = packer.found().first_ns;
    record_.last_ns = packer.found().last_ns;
    return going ? IntrakernelResult::stored : stopped_;
  }

  IntrakernelResult unreadable(const BufferReader &reader) {
    record_.value = reader.error();
    return IntrakernelResult::unreadable;
  }

  // A piece, in as many blobs as it takes.
  bool write(const char *bytes, size_t size) {
    Busy busy;
    if (!busy) {
      return stop(IntrakernelResult::no_space);
    }
    Blobs &all = blobs();
    std::lock_guard lock(all.mutex);
    if (all.recording != log_.generation()) {
      all.recording = log_.generation();
      all.stored = 0;
      new (&all.log) BlobLog;
    }
    if (all.stored + size > kMost) {
      record_.value = static_cast<int64_t>(all.stored);
      return stop(IntrakernelResult::limit);
    }
    for (size_t at = 0; at < size; at += BlobLog::kLargest) {
      size_t part = std::min(size - at, BlobLog::kLargest);
      BlobHead head{0, at + part < size ? kBlobContinued : 0, 0, 0};
      BlobLog::Blob blob = all.log.write(log_.file(), kNoThread, head, bytes + at, part,
                                         static_cast<size_t>(RecordType::intrakernel_read));
      if (blob.offset == 0) {
        return stop(IntrakernelResult::no_space);
      }
      blobs_.push_back(blob.offset);
      record_.bytes += part;
    }
    all.stored += size;
    return true;
  }

  // Where the pieces lie: other threads store theirs meanwhile, so they need not be neighbours.
  void write_index() {
    Blobs &all = blobs();
    std::lock_guard lock(all.mutex);
    size_t size = std::min(blobs_.size() * sizeof(uint64_t), BlobLog::kLargest);
    record_.blob = all.log
                       .write(log_.file(), kNoThread, BlobHead{}, blobs_.data(), size,
                              static_cast<size_t>(RecordType::intrakernel_read))
                       .offset;
  }

  bool stop(IntrakernelResult why) {
    stopped_ = why;
    return false;
  }

  void finish(IntrakernelResult result) {
    Busy busy;
    if (!busy) {
      return log_.file().drop(RecordType::intrakernel_read);
    }
    if (!blobs_.empty()) {
      write_index();
    }
    record_.head.domain = static_cast<uint16_t>(result);
    record_.end = now_ns(log_.clock());
    record_.start = record_.start == 0 ? record_.end : record_.start;
    record_.tags = source_.tags.empty() ? 0 : log_.intern(source_.tags);
    WideLog::Writer(log_.wide()).append(record_, record_.start);
  }

  ProcessLog &log_;
  const IntrakernelSource &source_;
  IntrakernelReadRecord record_{};
  bool captured_ = false;  // its kernel runs with its graph
  IntrakernelResult stopped_ = IntrakernelResult::no_space;
  std::vector<uint64_t> blobs_;  // offsets in the file
};

}  // namespace

bool store_intrakernel_launch(ProcessLog &log, const IntrakernelSource &source, uint64_t until_ms,
                              bool whole_context, bool last) {
  try {
    return Storing(log, source).run(until_ms, whole_context, last);
  } catch (...) {
    log.file().drop(RecordType::intrakernel_read);  // out of memory
    return true;
  }
}

void renew_intrakernel_store() {
  new (&blobs().mutex) std::mutex;
}

}  // namespace warplens::agent
