// Caches rows of unwind tables: each is made once, as files do not change.
#pragma once

#include <atomic>
#include <mutex>

#include "frame_tables.h"

namespace warplens::agent {

class RowCache {
 public:
  //! [MT] The row for `pc` in the file that has this number; null where its tables say nothing. Without a lock where it is known.
  const Row *find(uint32_t file, const ElfImage &image, uint64_t pc);

 private:
  static constexpr size_t kBuckets = 1 << 15;
  static constexpr size_t kBlock = 256 << 10;
  static constexpr size_t kMostBytes = 64 << 20;
  struct Known {
    Known *next;
    uint64_t pc;
    const Row *row;
    uint32_t file;
  };
  const Known *look(std::atomic<Known *> &bucket, uint32_t file, uint64_t pc) const;
  void *take(size_t size);
  const Row *store(const RowDraft &draft);

  std::atomic<std::atomic<Known *> *> buckets_{nullptr};
  std::mutex mutex_;
  char *block_ = nullptr;
  size_t left_ = 0;
  size_t used_ = 0;
};

}  // namespace warplens::agent
