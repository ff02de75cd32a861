// Writes chunks to a file behind the recording threads.
//
// The protocol. Recording threads write into memory and never wait for a disk. One thread per process
// copies what is new to the file every 100 ms. Records and strings are only appended, so it writes from
// `written` to the first head that is 0. Blobs and open ranges change in place, so they are copied and
// compared by a hash. A chunk that is used again is first marked kRenewing in the file, so that a
// reader skips it until it is complete.
#include "buffers.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "file.h"
#include "names.h"
#include "spool/system/helpers.h"
#include "spool/system/space.h"
#include "spool/system/uncancelled.h"

namespace warplens {
namespace {

constexpr size_t kStack = size_t{256} << 10;
constexpr uint64_t kChunkHead = sizeof(ChunkHeader);

size_t class_of(size_t size) {
  return static_cast<size_t>(std::bit_width((size - 1) / kPage));
}

size_t padded(uint64_t size) {
  return (size + 7) / 8 * 8;
}

void wait_for(std::atomic<uint32_t> &word, uint32_t value, const timespec *time) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, time, nullptr, 0);
}

void wake(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

uint32_t first_word(const char *at) {
  return __atomic_load_n(reinterpret_cast<const uint32_t *>(at), __ATOMIC_ACQUIRE);
}

// Slots change while they are copied: one that did so is left out, and is right the next time.
// A seqlock by the first word: read it, copy the slot, read it again. If it changed, the copy may be
// half old and half new, so its first word becomes 0, which readers take for an empty slot.
__attribute__((no_sanitize("thread"))) void copy_slots(char *to, const char *from, size_t size,
                                                       size_t stride) {
  for (size_t at = 0; at < kChunkHead; at += 8) {
    *reinterpret_cast<uint64_t *>(to + at) = *reinterpret_cast<const uint64_t *>(from + at);
  }
  for (size_t at = kChunkHead; at + stride <= size; at += stride) {
    uint64_t before = __atomic_load_n(reinterpret_cast<const uint64_t *>(from + at), __ATOMIC_ACQUIRE);
    for (size_t i = 0; i < stride; i += 8) {
      *reinterpret_cast<uint64_t *>(to + at + i) = *reinterpret_cast<const uint64_t *>(from + at + i);
    }
    std::atomic_thread_fence(std::memory_order_acquire);
    if (before != __atomic_load_n(reinterpret_cast<const uint64_t *>(from + at), __ATOMIC_RELAXED)) {
      *reinterpret_cast<uint64_t *>(to + at) = 0;
    }
  }
}

// Records of one size, one behind the other.
bool has_records(const ChunkHeader &chunk) {
  return chunk.kind == ChunkKind::records || chunk.kind == ChunkKind::wide;
}

// The header of a chunk that is complete, or null.
ChunkHeader *header_at(char *begin) {
  auto *chunk = reinterpret_cast<ChunkHeader *>(begin);
  return std::atomic_ref(chunk->magic).load(std::memory_order_acquire) == kChunkMagic ? chunk : nullptr;
}

}  // namespace

Buffers::~Buffers() {
  stop();
  while (started_.load() && !threadless_.load() && gone_.load() == 0) {
    wait_for(gone_, 0, nullptr);
  }
  if (staging_ != nullptr) {
    unmap_memory(staging_, staging_size_);
  }
}

void Buffers::stop() {
  stopping_.store(1);
  wake(stopping_);
}

ChunkHeader *Buffers::take(uint64_t offset, size_t size, bool again, Chunk *fresh) {
  if (!started_.exchange(true)) {
    start();
  }
  size_t number = class_of(size);
  size_t room = kPage << number;
  if (number >= kSizes) {
    return nullptr;
  }
  std::lock_guard lock(table_);
  uint32_t place = 0;
  while (place < live_count_ && live_.at(place)->begin != nullptr) {
    ++place;
  }
  Live *live = live_.make(place);
  if (live == nullptr) {
    return nullptr;
  }
  char *begin = reinterpret_cast<char *>(spares_[number]);
  if (begin != nullptr) {
    spares_[number] = spares_[number]->next;
    std::memset(begin, 0, size);
  } else {
    begin = static_cast<char *>(map_memory(room));
    if (begin == nullptr) {
      return nullptr;
    }
    madvise(begin, room, MADV_DONTFORK);
    *fresh = {reinterpret_cast<ChunkHeader *>(begin), room, 0};
  }
  *live = {begin, size, offset, 0, 0, again};
  live_count_ = std::max(live_count_, place + 1);
  return reinterpret_cast<ChunkHeader *>(begin);
}

// How much of a chunk holds something. Blobs and open ranges change behind their end too; those are compared as a whole.
uint64_t Buffers::end_of_contents(const Live &live) {
  const auto *chunk = reinterpret_cast<const ChunkHeader *>(live.begin);
  uint64_t at = kChunkHead;
  switch (chunk->kind) {
    case ChunkKind::records:
    case ChunkKind::wide:
      for (at = std::max(at, live.written); at + chunk->stride <= live.size; at += chunk->stride) {
        if (first_word(live.begin + at) == 0) {
          break;
        }
      }
      return at;
    case ChunkKind::strings:
      for (at = std::max(at, live.written); at + sizeof(StringHead) <= live.size;) {
        uint32_t size = first_word(live.begin + at);
        if (size == 0) {
          break;
        }
        at += padded(sizeof(StringHead) + size - 1);
      }
      return std::min<uint64_t>(at, live.size);
    case ChunkKind::blobs:
      while (at + sizeof(BlobHead) <= live.size) {
        uint32_t size = first_word(live.begin + at);
        if (size == 0) {
          break;
        }
        at += padded(sizeof(BlobHead) + size - 1);
      }
      return std::min<uint64_t>(at, live.size);
    default:
      return live.size;
  }
}

// What a chunk holds behind `from`, by what it costs when it is lost. Open ranges cost nothing yet.
void Buffers::count(const Live &live, uint64_t from, std::atomic<uint64_t> *dropped) {
  const auto *chunk = reinterpret_cast<const ChunkHeader *>(live.begin);
  uint64_t at = kChunkHead;
  for (uint64_t size = 0; at + sizeof(uint64_t) <= live.size && chunk->kind != ChunkKind::open; at += size) {
    uint32_t word = first_word(live.begin + at);
    if (word == 0) {
      return;
    }
    size_t what = 0;
    if (has_records(*chunk)) {
      what = word & 0xff;
      size = chunk->stride;
    } else {
      what = chunk->kind == ChunkKind::blobs ? kLostPayloads : 0;
      size = padded((chunk->kind == ChunkKind::blobs ? sizeof(BlobHead) : sizeof(StringHead)) + word - 1);
    }
    if (at >= from && what < kDropSlots && what != static_cast<size_t>(RecordType::thread_switch)) {
      dropped[what].fetch_add(1, std::memory_order_relaxed);
    }
  }
}

void Buffers::note(int error) {
  uint32_t none = 0;
  header_->error.compare_exchange_strong(none, static_cast<uint32_t>(error));
}

// Opened by name each time: programs close descriptors that are not theirs.
int Buffers::open_file() const {
  int fd = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  struct stat status{};
  if (fd >= 0 && (fstat(fd, &status) != 0 || status.st_dev != device_ || status.st_ino != inode_)) {
    close(fd);
    errno = ESTALE;
    return -1;
  }
  return fd;
}

bool Buffers::put(int fd, const char *from, size_t size, uint64_t offset, size_t *done) {
  size_t written = 0;
  while (written < size) {
    if (over_file_limit(offset + size)) {
      errno = EFBIG;
      break;
    }
    ssize_t n = pwrite(fd, from + written, size - written, static_cast<off_t>(offset + written));
    if (n > 0) {
      written += static_cast<size_t>(n);
    } else if (n == 0 || errno != EINTR) {
      break;
    }
  }
  if (done != nullptr) {
    *done = written;
  }
  if (written < size) {
    note(errno);
  }
  return written == size;
}

void Buffers::write(int fd, Live &live) {
  const auto *chunk = reinterpret_cast<const ChunkHeader *>(live.begin);
  const char *from = live.begin;
  uint64_t end = end_of_contents(live);
  bool appended = has_records(*chunk) || chunk->kind == ChunkKind::strings;
  uint64_t hash = 0;
  if (!appended) {
    if (staging_size_ < live.size) {
      char *larger = static_cast<char *>(map_memory(live.size));
      if (larger == nullptr) {
        return;
      }
      if (staging_ != nullptr) {
        unmap_memory(staging_, staging_size_);
      }
      staging_ = larger;
      staging_size_ = live.size;
    }
    copy_slots(staging_, from, end, chunk->kind == ChunkKind::open ? chunk->stride : 8);
    from = staging_;
    hash = hash_text(from, end);
    if (live.again) {
      std::memset(staging_ + end, 0, live.size - end);
    }
  }
  if (appended ? live.written == end && end > kChunkHead : live.hash == hash) {
    return;
  }
  if (live.again) {
    ChunkHeader renewing = *chunk;
    renewing.sequence = kRenewing;
    end = live.size;
    if (!put(fd, reinterpret_cast<const char *>(&renewing), kChunkHead, live.offset, nullptr) ||
        !put(fd, from + kChunkHead, end - kChunkHead, live.offset + kChunkHead, nullptr)) {
      return;
    }
    live.again = false;
    end = end_of_contents(live);
  }
  uint64_t begin = appended ? live.written : 0;
  size_t done = 0;
  if (put(fd, from + begin, end - begin, live.offset + begin, &done)) {
    live.written = end;
    live.hash = hash;
    return;
  }
  if (!appended || begin + done < kChunkHead) {
    return;  // from the start again
  }
  // Up to the last record that is whole; what is there of the next one must not look like one.
  uint64_t whole = std::max(begin, kChunkHead);
  for (uint64_t next = whole; next <= begin + done;) {
    whole = next;
    next += has_records(*chunk) ? chunk->stride : padded(sizeof(StringHead) + first_word(from + whole) - 1);
  }
  live.written = whole;
  if (whole < begin + done) {
    const uint64_t nothing = 0;
    put(fd, reinterpret_cast<const char *>(&nothing), std::min<uint64_t>(8, begin + done - whole),
        live.offset + whole, nullptr);
  }
}

void Buffers::write_out(ChunkHeader *chunk) {
  Uncancelled uncancelled;
  int saved = errno;
  {
    std::lock_guard lock(writing_);
    Live *live = nullptr;
    if (stopping_.load() == 0) {
      std::lock_guard table(table_);
      for (uint32_t i = 0; i < live_count_ && live == nullptr; ++i) {
        live = live_.at(i)->begin == reinterpret_cast<char *>(chunk) ? live_.at(i) : nullptr;
      }
    }
    if (live == nullptr) {
      errno = saved;
      return;
    }
    int fd = open_file();
    Live before = *live;
    if (fd >= 0) {
      write(fd, *live);
      if (close(fd) != 0 && errno != EINTR) {  // where a server says only now that it has no room
        note(errno);
        *live = before;
      }
    } else {
      note(errno);
    }
    if (live->written != end_of_contents(*live)) {
      count(*live, std::max(live->written, kChunkHead), header_->dropped);
    }
    std::lock_guard table(table_);
    size_t number = class_of(live->size);
    auto *spare = reinterpret_cast<Spare *>(live->begin);
    live->begin = nullptr;
    spare->next = spares_[number];
    spares_[number] = spare;
  }
  if (threadless_.load()) {
    flush();
  }
  errno = saved;
}

void Buffers::flush() {
  std::lock_guard lock(writing_);
  flush_locked();
}

void Buffers::finish() {
  std::lock_guard lock(writing_);
  flush_locked();
  stop();
}

void Buffers::flush_locked() {
  if (stopping_.load() != 0) {
    return;
  }
  uint32_t count_now = 0;
  {
    std::lock_guard table(table_);
    count_now = live_count_;
  }
  int fd = open_file();
  if (fd < 0) {
    note(errno);
    return;
  }
  for (auto &counter : unwritten_) {
    counter.store(0);
  }
  // Strings and payloads last: what speaks of them is in the file only when they are, once all of this is through.
  for (bool named : {true, false}) {
    for (uint32_t i = 0; i < count_now; ++i) {
      Live *live = live_.at(i);
      const ChunkHeader *chunk = nullptr;
      {
        std::lock_guard table(table_);
        chunk = live->begin == nullptr ? nullptr : header_at(live->begin);
      }
      if (chunk == nullptr) {
        continue;
      }
      bool is_open_table = chunk->kind == ChunkKind::open;
      if (named != (has_records(*chunk) || is_open_table)) {
        continue;
      }
      write(fd, *live);
      if (header_->error.load(std::memory_order_relaxed) != 0 && !is_open_table) {
        count(*live, std::max(live->written, kChunkHead), unwritten_);
      }
    }
  }
  write_header(fd);
  if (close(fd) != 0 && errno != EINTR) {
    note(errno);
  }
}

void Buffers::write_header(int fd) {
  alignas(FileHeader) char page[sizeof(FileHeader)];
  for (size_t at = 0; at < sizeof(page); at += 8) {
    uint64_t word = __atomic_load_n(
        reinterpret_cast<const uint64_t *>(reinterpret_cast<const char *>(header_) + at), __ATOMIC_RELAXED);
    std::memcpy(page + at, &word, sizeof(word));
  }
  auto *copy = reinterpret_cast<FileHeader *>(page);
  for (size_t i = 0; i < kDropSlots; ++i) {
    copy->dropped[i].fetch_add(unwritten_[i].load(), std::memory_order_relaxed);
  }
  put(fd, page, sizeof(page), 0, nullptr);
}

// Where no thread can be had, threads that record write for all.
void Buffers::start() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_t thread;
  int error = pthread_attr_init(&attributes);
  if (error == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, kStack);
    error = pthread_create(&thread, &attributes, run, this);
    pthread_attr_destroy(&attributes);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  threadless_.store(error != 0);
}

void *Buffers::run(void *self) {
  HelperThread helper;
  auto &buffers = *static_cast<Buffers *>(self);
  prctl(PR_SET_NAME, "warplens");
  const timespec period{0, kEveryMs * 1'000'000};
  while (buffers.stopping_.load() == 0 && !only_helpers_left()) {
    wait_for(buffers.stopping_, 0, &period);
    buffers.flush();
  }
  buffers.flush();  // before the end of the process, if that is it
  buffers.gone_.store(1);
  wake(buffers.gone_);
  return nullptr;
}

}  // namespace warplens
