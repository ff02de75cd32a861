// Grows a spool file step by step: reserves space, then maps it.
#include "file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "spool/system/clock.h"
#include "spool/system/space.h"
#include "spool/system/uncancelled.h"
#include "window.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace warplens {
namespace {

constexpr size_t kFirstStep = size_t{256} << 10;
constexpr size_t kLastStep = size_t{64} << 20;
constexpr size_t kHugeFrom =
    size_t{16} << 20;  // not before: a program that records little should not get 2 MiB at a time
// Each open chunk may keep 2 MiB mapped then; with more of them, small pages keep a program small.
constexpr uint32_t kHugeUpTo = 12;
constexpr uint32_t kRetryEvery = 4096;
constexpr size_t kSmallInRing = size_t{16} << 10;

size_t round_to_page(size_t size) {
  return (size + kPage - 1) / kPage * kPage;
}

int write_whole(int fd, const char *from, size_t size) {
  while (size > 0) {
    ssize_t n = write(fd, from, size);
    if (n < 0 && errno != EINTR) {
      return errno;
    }
    from += std::max<ssize_t>(n, 0);
    size -= static_cast<size_t>(std::max<ssize_t>(n, 0));
  }
  return 0;
}

char *map(int fd, uint64_t offset, size_t size, bool huge) {
  void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (p == MAP_FAILED) {
    return nullptr;
  }
  madvise(p, size, MADV_DONTFORK);  // a child must never write into its parent's spool
  if (size <= kFirstStep) {
    madvise(
        p, size,
        MADV_RANDOM);  // a short process writes a few pages: the kernel would fill 32 with zeros for the first one
  } else if (size >= kHugeFrom) {
    // Large folios: half the kernel's cost of a new page (1.0 -> 0.5 us), where it has them. Linux 6.18 maps whole ones, whatever was
    // asked for, and makes none where nothing is read ahead.
    madvise(p, size, huge ? MADV_HUGEPAGE : MADV_RANDOM);
  }
  return static_cast<char *>(p);
}

// Of several threads the latest time stays.
void raise_to(std::atomic<uint64_t> &time, uint64_t to) {
  uint64_t before = time.load(std::memory_order_relaxed);
  while (before < to && !time.compare_exchange_weak(before, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

int charge(ControlPage *control, size_t size) {
  if (!can_write(control)) {
    return ENOSPC;
  }
  uint64_t bytes = control->bytes.load(std::memory_order_relaxed);
  do {
    if (control->max_bytes != 0 && (size > control->max_bytes || bytes > control->max_bytes - size)) {
      return kMaxSizeReached;
    }
  } while (!control->bytes.compare_exchange_weak(bytes, bytes + size, std::memory_order_relaxed));
  return 0;
}

void discharge(ControlPage *control, size_t size) {
  if (!can_write(control)) {
    return;
  }
  uint64_t bytes = control->bytes.load(std::memory_order_relaxed);
  while (!control->bytes.compare_exchange_weak(bytes, bytes - std::min<uint64_t>(bytes, size),
                                               std::memory_order_relaxed)) {
  }
}

int SpoolFile::take(int fd, uint64_t offset, size_t size) {
  int error = control_ == nullptr ? 0 : charge(control_, size);
  if (error == 0) {
    error = buffers_ == nullptr ? reserve(fd, offset, size) : extend(fd, offset + size);
    if (error != 0) {
      give_back(size);
    }
  }
  return error;
}

void SpoolFile::give_back(size_t size) {
  if (control_ != nullptr) {
    discharge(control_, size);
  }
}

void SpoolFile::drop(RecordType type) {
  count(static_cast<size_t>(type));
  uint64_t now = now_ns(clock_);
  uint64_t never = 0;
  header_->first_loss_ns.compare_exchange_strong(never, now, std::memory_order_relaxed);
  raise_to(header_->last_loss_ns, now);
}

// One number is never given: it says that a chunk is being emptied.
uint32_t SpoolFile::next_sequence() {
  uint32_t next = sequence_.fetch_add(1, std::memory_order_relaxed);
  return next == kRenewing ? sequence_.fetch_add(1, std::memory_order_relaxed) : next;
}

void SpoolFile::note_limit(int error) {
  if (error == kMaxSizeReached) {
    control_->over.fetch_add(1, std::memory_order_relaxed);
  }
}

int SpoolFile::create(const std::string &path, std::string_view json, const ClockParams &clock,
                      ControlPage *control) {
  control_ = control;
  keep_ns_ = control == nullptr ? 0 : control->keep_ns;
  clock_ = clock;
  path_ = path;
  size_t first_chunk = kPage + round_to_page(json.size());
  size_t size = std::max(kFirstStep, first_chunk + kFirstStep / 2);
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    return errno;
  }
  int error = 0;
  struct stat status{};
  char *base = nullptr;
  if (fstat(fd, &status) != 0) {
    error = errno;
  } else if (!can_reserve(fd)) {
    base = static_cast<char *>(map_memory(first_chunk));
    buffers_.reset(base == nullptr ? nullptr
                                   : new (std::nothrow) Buffers(path_, status.st_dev, status.st_ino,
                                                                reinterpret_cast<FileHeader *>(base)));
    error = buffers_ == nullptr ? ENOMEM : 0;
  }
  // A nearly full disk still gets the header, so that the loss is counted where it happens.
  for (size_t least = first_chunk; error == 0 && (error = take(fd, 0, size)) != 0 && size > least;) {
    size = std::max(least, round_to_page(size / 2));
    error = 0;
  }
  if (error == 0 && buffers_ == nullptr && (base = map(fd, 0, size, false)) == nullptr) {
    error = errno;
    give_back(size);
  }
  if (error == 0) {
    header_ = reinterpret_cast<FileHeader *>(base);
    std::memcpy(base + kPage, json.data(), json.size());
    header_->version = kSpoolVersion;
    header_->first_chunk = static_cast<uint32_t>(first_chunk);
    header_->json_offset = kPage;
    header_->json_size = static_cast<uint32_t>(json.size());
    header_->flags = buffers_ == nullptr ? 0 : kSpoolBuffered;
    header_->clock = clock;
    header_->file_size.store(size);
    header_->chunk_end.store(first_chunk);
    std::atomic_thread_fence(std::memory_order_release);
    std::memcpy(header_->magic, kSpoolMagic, sizeof(kSpoolMagic));
    if (buffers_ != nullptr && (error = write_whole(fd, base, first_chunk)) != 0) {
      give_back(size);
    }
  }
  close(fd);  // programs close descriptors that are not theirs; the file is opened again by name to grow
  if (error != 0) {
    note_limit(error);
    unlink(path.c_str());
    return error;
  }
  remember(base, buffers_ == nullptr ? size : first_chunk, 0);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  step_ = base;
  cursor_ = first_chunk;
  file_size_ = size;
  return 0;
}

void SpoolFile::remember(char *begin, size_t size, uint64_t offset) {
  if (Step *step = steps_.make(step_count_)) {  // else it stays mapped for good
    *step = {begin, size, offset};
    ++step_count_;
  }
}

// Pages that were let go leave tables of pages behind, 2 MiB for each GiB. Where the same part of the file is mapped anew in their place
// they go; a thread that writes there late, or slowly, gets the page back as before.
void SpoolFile::renew_old_step(int fd) {
  constexpr uint32_t kBehind = 2;
  const Step *step = step_count_ < kBehind ? nullptr : steps_.at(step_count_ - kBehind);
  if (step == nullptr || step->size < kHugeFrom) {
    return;
  }
  // By number, as in forget_mapping.
  long got = syscall(SYS_mmap, step->begin, step->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                     static_cast<off_t>(step->offset));
  if (got == reinterpret_cast<intptr_t>(step->begin)) {
    madvise(step->begin, step->size, MADV_DONTFORK);
    madvise(step->begin, step->size, MADV_RANDOM);
  }
}

void SpoolFile::note_end(uint64_t end_ns) {
  header_->end_ns.store(end_ns, std::memory_order_release);
  if (buffers_ != nullptr) {
    buffers_->flush();
  }
}

void SpoolFile::finish(uint64_t end_ns) {
  std::lock_guard lock(mutex_);
  closed_ = true;
  header_->end_ns.store(end_ns, std::memory_order_release);
  if (buffers_ != nullptr) {
    buffers_->finish();
  }
  for (uint32_t i = 0; i < step_count_; ++i) {
    forget_mapping(steps_.at(i)->begin, steps_.at(i)->size);
  }
}

void SpoolFile::become_child() {
  for (uint32_t i = 0; i < step_count_; ++i) {
    const Step *step = steps_.at(i);
    if (step != nullptr && step->begin != nullptr) {
      fill_hole(step->begin, step->size);
    }
  }
}

int SpoolFile::grow(size_t want) {
  Uncancelled uncancelled;
  int fd = open(path_.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return errno;
  }
  struct stat status{};
  int error = 0;
  size_t step = std::max(want, std::clamp<size_t>(file_size_, kFirstStep, kLastStep));
  char *base = nullptr;
  if (fstat(fd, &status) != 0 || status.st_dev != device_ || status.st_ino != inode_) {
    error = ESTALE;
  } else {
    while ((error = take(fd, file_size_, step)) != 0 && step > want && step > kPage) {
      step = std::max(round_to_page(step / 2), kPage);
    }
    if (error != 0 && step > kPage) {
      step = kPage;
      error = take(fd, file_size_, step);
    }
    if (error == 0 && buffers_ == nullptr &&
        (base = map(fd, file_size_, step, open_ <= kHugeUpTo)) == nullptr) {
      error = errno;
      give_back(step);
    }
  }
  if (error == 0 && buffers_ == nullptr && keep_ns_ == 0) {
    renew_old_step(fd);
  }
  close(fd);
  if (error != 0) {
    note_limit(error);
    return error;
  }
  if (buffers_ == nullptr) {
    remember(base, step, file_size_);
  }
  step_ = base;
  step_offset_ = file_size_;
  cursor_ = file_size_;
  file_size_ += step;
  header_->file_size.store(file_size_, std::memory_order_release);
  return 0;
}

// The memory for a chunk; the caller holds the lock.
ChunkHeader *SpoolFile::place(uint64_t offset, size_t size, bool again) {
  if (buffers_ == nullptr) {
    return reinterpret_cast<ChunkHeader *>(step_ + (offset - step_offset_));
  }
  Chunk fresh;
  ChunkHeader *chunk = buffers_->take(offset, size, again, &fresh);
  if (fresh) {
    remember(reinterpret_cast<char *>(fresh.header), fresh.size, fresh.offset);
  }
  return chunk;
}

Chunk SpoolFile::add_chunk(ChunkKind kind, uint16_t stride, uint32_t thread, size_t want, RecordType type) {
  // With the disk full every record would pay for a failing system call: try again only now and then.
  if (failing_.load(std::memory_order_relaxed) != 0 &&
      failing_.fetch_add(1, std::memory_order_relaxed) % kRetryEvery != 0) {
    return {};
  }
  std::lock_guard lock(mutex_);
  if (closed_) {
    return {};
  }
  want = round_to_page(want);
  int error = 0;
  if (cursor_ == file_size_) {
    int saved = errno;
    error = grow(want);
    errno = saved;
  }
  ChunkHeader *chunk = nullptr;
  size_t size = std::min<uint64_t>(want, file_size_ - cursor_);
  if (error == 0 && (chunk = place(cursor_, size, false)) == nullptr) {
    error = ENOMEM;
  }
  if (error != 0) {
    uint32_t none = 0;
    header_->error.compare_exchange_strong(none, static_cast<uint32_t>(error));
    failing_.store(1, std::memory_order_relaxed);
    return {};
  }
  failing_.store(0, std::memory_order_relaxed);
  Chunk result{chunk, size, cursor_};
  chunk->kind = kind;
  chunk->type = type;
  chunk->stride = stride;
  chunk->size = size;
  chunk->thread = thread;
  chunk->sequence = next_sequence();
  std::atomic_ref(chunk->magic).store(kChunkMagic, std::memory_order_release);
  ++open_;
  cursor_ += size;
  header_->chunk_end.store(cursor_, std::memory_order_release);
  return result;
}

Chunk SpoolFile::allocate(ChunkKind kind, uint16_t stride, uint32_t thread, size_t want, RecordType type,
                          size_t need) {
  need += sizeof(ChunkHeader);
  for (int i = 0; i < 2; ++i) {  // what is left of a step may be too little; the next one is not
    Chunk chunk = add_chunk(kind, stride, thread, std::max(want, need), type);
    if (!chunk || chunk.size >= need) {
      return chunk;
    }
    retire(chunk);
  }
  return {};
}

Chunk SpoolFile::allocate_lasting(ChunkKind kind, uint16_t stride, uint32_t thread, size_t want,
                                  RecordType type, size_t need) {
  Chunk chunk = allocate(kind, stride, thread, want, type, need);
  return chunk || keep_ns_ == 0 ? chunk : take_used(Used::smallest, kind, stride, thread, need, type);
}

size_t SpoolFile::largest_in_ring() const {
  constexpr size_t kInFile = 32;
  return std::max(kSmallInRing, round_to_page(header_->file_size.load(std::memory_order_relaxed) / kInFile));
}

void SpoolFile::retire(const Chunk &chunk) {
  if (!chunk) {
    return;
  }
  --open_;
  if (buffers_ == nullptr) {
    let_go(chunk.header, chunk.end());
  } else {
    buffers_->write_out(chunk.header);
  }
}

void SpoolFile::retire(const Chunk &chunk, uint64_t now) {
  if (keep_ns_ != 0) {
    std::lock_guard lock(used_mutex_);
    UsedChunk *entry = free_entries_;
    if (entry != nullptr) {
      free_entries_ = entry->next;
    } else if ((entry = entries_.make(entry_count_)) != nullptr) {
      ++entry_count_;
    }
    if (entry != nullptr) {  // else it is never written again
      uint16_t stride = chunk.header->stride;
      uint64_t records = stride == 0 ? 0 : (chunk.size - sizeof(ChunkHeader)) / stride;
      *entry = {chunk, chunk.header->generation, now, records, nullptr};
      (chunk.header->kind == ChunkKind::blobs ? used_blobs_ : used_records_).add(entry);
    }
  }
  retire(chunk);
}

// The caller holds the lock.
UsedChunk *SpoolFile::used_of(UsedChunks &used, Used which, size_t need, uint64_t latest) {
  for (;;) {
    UsedChunk *entry = used.take(need, latest, which == Used::smallest);
    if (entry == nullptr || !in_closed_window(control_, entry->chunk.since, entry->newest)) {
      return entry;
    }
    entry->next = free_entries_;  // it was asked for: nobody writes it anew
    free_entries_ = entry;
  }
}

// The caller holds the lock.
UsedChunk *SpoolFile::next_used(Used which, ChunkKind kind, size_t need, uint64_t now) {
  bool expired = which == Used::expired;
  uint64_t latest = expired ? now - std::min(now, keep_ns_) : UINT64_MAX;
  if (which == Used::smallest && lasting_ >= header_->file_size.load(std::memory_order_relaxed) / 4) {
    return nullptr;
  }
  UsedChunks &same = kind == ChunkKind::blobs ? used_blobs_ : used_records_;
  UsedChunk *entry = used_of(same, which, need, latest);
  if (entry == nullptr && !expired) {
    entry = used_of(kind == ChunkKind::blobs ? used_records_ : used_blobs_, which, need, latest);
  }
  if (entry != nullptr && which == Used::smallest) {
    lasting_ += entry->chunk.size;
  }
  return entry;
}

Chunk SpoolFile::take_used(Used which, ChunkKind kind, uint16_t stride, uint32_t thread, size_t need,
                           RecordType type, uint64_t now) {
  Chunk chunk;
  uint16_t generation = 0;
  {
    std::lock_guard lock(used_mutex_);
    UsedChunk *entry = next_used(which, kind, need, now);
    if (entry == nullptr) {
      return {};
    }
    chunk = entry->chunk;
    generation = static_cast<uint16_t>(entry->generation + 1);
    note_given_up(*entry, which != Used::expired);
    entry->next = free_entries_;
    free_entries_ = entry;
  }
  if (buffers_ != nullptr) {
    std::lock_guard lock(mutex_);
    chunk.header = closed_ ? nullptr : place(chunk.offset, chunk.size, true);
    if (!chunk) {
      return {};
    }
  } else {
    populate(chunk.header, chunk.size);
  }
  ++open_;
  ChunkHeader header{};
  header.kind = kind;
  header.type = type;
  header.stride = stride;
  header.thread = thread;
  header.generation = generation;
  renew(chunk, header);
  return chunk;
}

void SpoolFile::note_given_up(const UsedChunk &used, bool early) {
  header_->given_up.fetch_add(used.records, std::memory_order_relaxed);
  raise_to(header_->given_up_ns, used.newest);
  if (early) {
    raise_to(header_->early_ns, used.newest);
  }
}

// A reader that comes meanwhile, or after the process was killed here, sees by the number that the contents are no longer what they
// were, or not yet what they will be.
void SpoolFile::renew(const Chunk &chunk, const ChunkHeader &with) {
  ChunkHeader *header = chunk.header;
  std::atomic_ref number(header->sequence);
  number.store(kRenewing, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (buffers_ == nullptr) {
    std::memset(chunk.contents(), 0, chunk.size - sizeof(ChunkHeader));
  }
  header->kind = with.kind;
  header->type = with.type;
  header->stride = with.stride;
  header->size = chunk.size;
  header->thread = with.thread;
  header->generation = with.generation;
  number.store(next_sequence(), std::memory_order_release);
  std::atomic_ref(header->magic).store(kChunkMagic, std::memory_order_release);
}

// The page at `end` may be the next one that is written.
void SpoolFile::let_go(const void *begin, const void *end) {
  auto first = reinterpret_cast<uintptr_t>(begin) / kPage * kPage;
  auto last = reinterpret_cast<uintptr_t>(end) / kPage * kPage;
  if (buffers_ != nullptr || first >= last) {
    return;
  }
  int saved = errno;
  madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED);
  errno = saved;
}

void SpoolFile::populate(void *begin, size_t size) {
  auto first = reinterpret_cast<uintptr_t>(begin) / kPage * kPage;
  auto last = reinterpret_cast<uintptr_t>(begin) + size;
  int saved = errno;
  madvise(reinterpret_cast<void *>(first), last - first,
          MADV_POPULATE_WRITE);  // before Linux 5.14: faults as they come
  errno = saved;
}

}  // namespace warplens
