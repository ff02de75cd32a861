// Growing a spool file step by step: reserve, then map.
#include "file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace warpline {
namespace {

constexpr size_t kFirstStep = size_t{256} << 10;
constexpr size_t kLastStep = size_t{64} << 20;
constexpr size_t kHugeFrom =
    size_t{16} << 20;  // not before: a program that records little should not get 2 MiB at a time
constexpr uint32_t kRetryEvery = 4096;

size_t round_to_page(size_t size) {
  return (size + kPage - 1) / kPage * kPage;
}

// Going past RLIMIT_FSIZE raises SIGXFSZ in the traced program: look before asking.
bool over_file_limit(uint64_t size) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && size > limit.rlim_cur;
}

int write_zeros(int fd, uint64_t offset, size_t size) {
  static const char zeros[65536] = {};
  while (size > 0) {
    ssize_t n = pwrite(fd, zeros, std::min(size, sizeof(zeros)), static_cast<off_t>(offset));
    if (n < 0) {
      if (errno == EINTR) {
        continue;
      }
      return errno;
    }
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return 0;
}

// After this, writing to a mapping of these bytes cannot run out of space.
int reserve(int fd, uint64_t offset, size_t size) {
  if (over_file_limit(offset + size)) {
    return EFBIG;
  }
  int result;
  do {
    result = fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  if (result == 0) {
    return 0;
  }
  return errno == EOPNOTSUPP || errno == ENOSYS ? write_zeros(fd, offset, size) : errno;
}

char *map(int fd, uint64_t offset, size_t size) {
  void *p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (p == MAP_FAILED) {
    return nullptr;
  }
  madvise(p, size, MADV_DONTFORK);  // a child must never write into its parent's spool
  if (size >= kHugeFrom) {
    madvise(
        p, size,
        MADV_HUGEPAGE);  // large folios: half the kernel's cost of a new page (1.0 -> 0.5 us), where it has them
  }
  return static_cast<char *>(p);
}

}  // namespace

int SpoolFile::create(const std::string &path, std::string_view json, const ClockParams &clock) {
  size_t first_chunk = kPage + round_to_page(json.size());
  size_t size = std::max(kFirstStep, first_chunk + kFirstStep / 2);
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) {
    return errno;
  }
  int error = 0;
  // A nearly full disk still gets the header, so that the loss is counted where it happens.
  for (size_t least = first_chunk; (error = reserve(fd, 0, size)) != 0 && size > least;) {
    size = std::max(least, round_to_page(size / 2));
  }
  struct stat status{};
  char *base = nullptr;
  if (error == 0 && (fstat(fd, &status) != 0 || (base = map(fd, 0, size)) == nullptr)) {
    error = errno;
  }
  close(fd);  // programs close descriptors that are not theirs; the file is opened again by name to grow
  if (error != 0) {
    unlink(path.c_str());
    return error;
  }
  remember(base, size);
  path_ = path;
  device_ = status.st_dev;
  inode_ = status.st_ino;
  header_ = reinterpret_cast<FileHeader *>(base);
  std::memcpy(base + kPage, json.data(), json.size());
  header_->version = kSpoolVersion;
  header_->first_chunk = static_cast<uint32_t>(first_chunk);
  header_->json_offset = kPage;
  header_->json_size = static_cast<uint32_t>(json.size());
  header_->clock = clock;
  header_->file_size.store(size);
  header_->chunk_end.store(first_chunk);
  std::atomic_thread_fence(std::memory_order_release);
  std::memcpy(header_->magic, kSpoolMagic, sizeof(kSpoolMagic));
  cursor_ = base + first_chunk;
  cursor_offset_ = first_chunk;
  step_end_ = base + size;
  file_size_ = size;
  return 0;
}

void SpoolFile::remember(char *begin, size_t size) {
  if (Step *step = steps_.make(step_count_)) {  // else it stays mapped for good
    *step = {begin, size};
    ++step_count_;
  }
}

void SpoolFile::finish(uint64_t end_ns) {
  std::lock_guard lock(mutex_);
  closed_ = true;
  header_->end_ns.store(end_ns, std::memory_order_release);
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
    while ((error = reserve(fd, file_size_, step)) != 0 && step > want && step > kPage) {
      step = std::max(round_to_page(step / 2), kPage);
    }
    if (error != 0 && step > kPage) {
      step = kPage;
      error = reserve(fd, file_size_, step);
    }
    if (error == 0 && (base = map(fd, file_size_, step)) == nullptr) {
      error = errno;
    }
  }
  close(fd);
  if (error != 0) {
    return error;
  }
  remember(base, step);
  cursor_ = base;
  cursor_offset_ = file_size_;
  step_end_ = base + step;
  file_size_ += step;
  header_->file_size.store(file_size_, std::memory_order_release);
  return 0;
}

ChunkHeader *SpoolFile::allocate(ChunkKind kind, uint16_t stride, uint32_t thread, size_t want,
                                 uint64_t *offset) {
  // With the disk full every record would pay for a failing system call: try again only now and then.
  if (failing_.load(std::memory_order_relaxed) != 0 &&
      failing_.fetch_add(1, std::memory_order_relaxed) % kRetryEvery != 0) {
    return nullptr;
  }
  std::lock_guard lock(mutex_);
  if (closed_) {
    return nullptr;
  }
  want = round_to_page(want);
  if (cursor_ == step_end_) {
    int saved = errno;
    int error = grow(want);
    errno = saved;
    if (error != 0) {
      uint32_t none = 0;
      header_->error.compare_exchange_strong(none, static_cast<uint32_t>(error));
      failing_.store(1, std::memory_order_relaxed);
      return nullptr;
    }
  }
  failing_.store(0, std::memory_order_relaxed);
  size_t size = std::min(want, static_cast<size_t>(step_end_ - cursor_));
  auto *chunk = reinterpret_cast<ChunkHeader *>(cursor_);
  chunk->kind = kind;
  chunk->stride = stride;
  chunk->size = size;
  chunk->thread = thread;
  chunk->sequence = sequence_++;
  std::atomic_ref(chunk->magic).store(kChunkMagic, std::memory_order_release);
  if (offset != nullptr) {
    *offset = cursor_offset_;
  }
  cursor_ += size;
  cursor_offset_ += size;
  header_->chunk_end.store(cursor_offset_, std::memory_order_release);
  return chunk;
}

ChunkHeader *SpoolFile::allocate_for(size_t need, ChunkKind kind, uint32_t thread, size_t want,
                                     uint64_t *offset) {
  need += sizeof(ChunkHeader);
  for (int i = 0; i < 2; ++i) {  // what is left of a mapped step may be too little; the next one is not
    ChunkHeader *chunk = allocate(kind, 0, thread, std::max(want, need), offset);
    if (chunk == nullptr || chunk->size >= need) {
      return chunk;
    }
  }
  return nullptr;
}

void SpoolFile::populate(void *begin, size_t size) {
  auto first = reinterpret_cast<uintptr_t>(begin) / kPage * kPage;
  auto last = reinterpret_cast<uintptr_t>(begin) + size;
  int saved = errno;
  madvise(reinterpret_cast<void *>(first), last - first,
          MADV_POPULATE_WRITE);  // before Linux 5.14: faults as they come
  errno = saved;
}

}  // namespace warpline
