// Caches rows of unwind tables.
// A hash table that only grows; its readers take no lock.
//
// A bucket is a list whose head is released after the entry is complete, and entries never change or
// move. So a thread reads it while another one, under the mutex, adds to it.
#include "row_cache.h"

#include <cstring>
#include <new>

#include "spool/system/memory.h"

namespace warplens::agent {

const RowCache::Known *RowCache::look(std::atomic<Known *> &bucket, uint32_t file, uint64_t pc) const {
  for (const Known *one = bucket.load(std::memory_order_acquire); one != nullptr; one = one->next) {
    if (one->pc == pc && one->file == file) {
      return one;
    }
  }
  return nullptr;
}

void *RowCache::take(size_t size) {
  size = (size + 7) / 8 * 8;
  if (size > left_) {
    if (used_ + kBlock > kMostBytes || size > kBlock) {
      return nullptr;
    }
    block_ = static_cast<char *>(map_memory(kBlock));
    left_ = block_ != nullptr ? kBlock : 0;
    used_ += left_;
    if (size > left_) {
      return nullptr;
    }
  }
  left_ -= size;
  return block_ + left_;
}

const Row *RowCache::store(const RowDraft &draft) {
  size_t count = 0;
  for (const RegisterRule &rule : draft.rules) {
    count += rule.rule != Rule::same;
  }
  void *at = take(sizeof(Row) + count * sizeof(RegisterRule) + draft.expressions.size());
  if (at == nullptr) {
    return nullptr;
  }
  Row *row = new (at) Row(draft.row);
  row->count = static_cast<uint8_t>(count);
  auto *rules = reinterpret_cast<RegisterRule *>(row + 1);
  for (const RegisterRule &rule : draft.rules) {
    if (rule.rule != Rule::same) {
      *rules++ = rule;
    }
  }
  std::memcpy(rules, draft.expressions.data(), draft.expressions.size());
  return row;
}

const Row *RowCache::find(uint32_t file, const ElfImage &image, uint64_t pc) {
  auto *buckets = buckets_.load(std::memory_order_acquire);
  size_t place = ((pc ^ uint64_t{file} << 40) * 0x9e3779b97f4a7c15) >> (64 - 15);
  if (buckets != nullptr) {
    if (const Known *known = look(buckets[place], file, pc)) {
      return known->row;
    }
  }
  std::lock_guard lock(mutex_);
  buckets = buckets_.load();
  if (buckets == nullptr) {
    buckets = static_cast<std::atomic<Known *> *>(map_memory(kBuckets * sizeof(buckets[0])));
    if (buckets == nullptr) {
      return nullptr;
    }
    buckets_.store(buckets, std::memory_order_release);
  }
  if (const Known *known = look(buckets[place], file, pc)) {
    return known->row;
  }
  RowDraft draft;
  const Row *row = find_row(image, pc, &draft) ? store(draft) : nullptr;
  if (void *at = take(sizeof(Known))) {
    buckets[place].store(new (at) Known{buckets[place].load(), pc, row, file}, std::memory_order_release);
  }
  return row;
}

}  // namespace warplens::agent
