// One spool file: reserves and maps space, hands it out in chunks. A full disk costs records, no signal.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "buffers.h"
#include "spool/system/memory.h"
#include "used_chunks.h"
#include "warplens/format.h"

namespace warplens {

//! [MT] Counts bytes against the limit of all files of the run; kMaxSizeReached when that would go over it, else 0.
int charge(ControlPage *control, size_t size);

//! [MT] Bytes that were charged are free again.
void discharge(ControlPage *control, size_t size);

//! Which full chunk of a flight recorder is filled again: one with nothing in it that is to be kept, the oldest, or the smallest.
enum class Used { expired, oldest, smallest };

class SpoolFile {
 public:
  SpoolFile() = default;
  SpoolFile(const SpoolFile &) = delete;
  SpoolFile &operator=(const SpoolFile &) = delete;

  //! Creates the file with its header and JSON, within the limits that `control` (null: none) sets. Returns 0, or the errno of
  //! what failed, or kMaxSizeReached (then nothing is left behind).
  [[nodiscard]] int create(const std::string &path, std::string_view json, const ClockParams &clock,
                           ControlPage *control = nullptr);

  //! [MT] New space: a chunk of about `want` bytes (at least a page, less than asked where the mapped step ends), or none when
  //! there is no space. Its header is complete; its contents are zero. It has room for `need` bytes behind its header.
  [[nodiscard]] Chunk allocate(ChunkKind kind, uint16_t stride, uint32_t thread, size_t want,
                               RecordType type = RecordType::none, size_t need = 0);

  //! [MT] The same for contents that stay for ever. If there is no space, a flight recorder gives its smallest full chunk for
  //! them, up to a quarter of the file in all: without a stack of open ranges a new thread could not record.
  [[nodiscard]] Chunk allocate_lasting(ChunkKind kind, uint16_t stride, uint32_t thread, size_t want,
                                       RecordType type = RecordType::none, size_t need = 0);

  //! [MT] A chunk is full, and the caller does not look into it again. Nothing in it is later than `now`: a flight recorder fills
  //! it again, whichever thread needs one.
  void retire(const Chunk &chunk, uint64_t now);
  void retire(const Chunk &chunk);

  //! [MT] For a flight recorder: a full chunk of any thread with room for `need` bytes. Empty again, with the next number; none
  //! if there is none. What a closed window holds is kept for ever. `now`: the time by which chunks are `expired`.
  [[nodiscard]] Chunk take_used(Used which, ChunkKind kind, uint16_t stride, uint32_t thread, size_t need,
                                RecordType type, uint64_t now = 0);

  //! [MT] Of a flight recorder, so that a full file has chunks for many threads.
  size_t largest_in_ring() const;

  //! How long records are kept for certain (ns); 0: for ever.
  uint64_t keep_ns() const { return keep_ns_; }
  const ClockParams &clock() const { return clock_; }

  //! [MT] Counts a record that could not be written, and notes when.
  void drop(RecordType type);
  void undrop(RecordType type) {
    header_->dropped[static_cast<size_t>(type)].fetch_sub(1, std::memory_order_relaxed);
  }
  void count(size_t what) { header_->dropped[what].fetch_add(1, std::memory_order_relaxed); }

  FileHeader *header() const { return header_; }
  const std::string &path() const { return path_; }
  bool is_buffered() const { return buffers_ != nullptr; }

  //! Asks the kernel for the pages now, in one call, instead of one fault each on the recording path.
  static void populate(void *begin, size_t size);

  //! [MT] These pages are complete: they leave the process, and stay in the file. The next access brings them back.
  void let_go(const void *begin, const void *end);

  //! [MT] The process ends, but more may come.
  void note_end(uint64_t end_ns);

  //! [MT] The file is complete. Its mappings become memory that belongs to no file: late writers hit nothing.
  void finish(uint64_t end_ns);

  //! [FORK] In a child, where the file is not mapped: a handler that interrupted a writer may return to it.
  void become_child();

 private:
  struct Step {
    char *begin;
    size_t size;
    uint64_t offset;  // in the file
  };

  // Space on the disk and of the run's limit.
  int take(int fd, uint64_t offset, size_t size);
  void give_back(size_t size);
  void note_limit(int error);
  int grow(size_t want);
  Chunk add_chunk(ChunkKind kind, uint16_t stride, uint32_t thread, size_t want, RecordType type);
  UsedChunk *used_of(UsedChunks &used, Used which, size_t need, uint64_t latest);
  UsedChunk *next_used(Used which, ChunkKind kind, size_t need, uint64_t now);
  void renew(const Chunk &chunk, const ChunkHeader &header);
  void note_given_up(const UsedChunk &used, bool early);
  uint32_t next_sequence();
  ChunkHeader *place(uint64_t offset, size_t size, bool again);
  void remember(char *begin, size_t size, uint64_t offset);
  void renew_old_step(int fd);

  std::mutex mutex_;
  FileHeader *header_ = nullptr;
  ControlPage *control_ = nullptr;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  uint64_t keep_ns_ = 0;
  ClockParams clock_{};
  std::unique_ptr<Buffers> buffers_;  // where space cannot be reserved; nothing is mapped then
  char *step_ = nullptr;              // the mapped step
  uint64_t step_offset_ = 0;          // where it begins in the file
  uint64_t cursor_ = 0;               // next chunk in the file
  uint64_t file_size_ = 0;
  std::atomic<uint32_t> sequence_{0};
  std::atomic<uint32_t> open_{0};  // chunks that somebody fills
  BlockArray<Step> steps_;         // all that was mapped
  uint32_t step_count_ = 0;
  bool closed_ = false;
  std::mutex used_mutex_;
  UsedChunks used_records_;  // of all threads
  UsedChunks used_blobs_;
  uint64_t lasting_ = 0;  // bytes of used chunks that were given for contents that stay
  BlockArray<UsedChunk> entries_;
  uint32_t entry_count_ = 0;
  UsedChunk *free_entries_ = nullptr;
  std::atomic<uint32_t> failing_{0};  // 0 = fine, else attempts since space ran out
};

}  // namespace warplens
