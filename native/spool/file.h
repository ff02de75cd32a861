// One spool file: reserve space, map it, hand it out in chunks. Losing space costs records, never a signal.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "memory.h"
#include "warpline/format.h"

namespace warpline {

class SpoolFile {
 public:
  SpoolFile() = default;
  SpoolFile(const SpoolFile &) = delete;
  SpoolFile &operator=(const SpoolFile &) = delete;

  //! Creates the file with its header and JSON. Returns 0, or the errno of what failed (then nothing is left behind).
  [[nodiscard]] int create(const std::string &path, std::string_view json, const ClockParams &clock);

  //! [MT] A chunk of about `want` bytes (at least a page, less than asked where the mapped step ends), or nullptr when
  //! there is no space. Its header is complete; its contents are zero. `offset` gets its place in the file.
  [[nodiscard]] ChunkHeader *allocate(ChunkKind kind, uint16_t stride, uint32_t thread, size_t want,
                                      uint64_t *offset = nullptr);

  //! [MT] The same for one thing of `need` bytes: a chunk that holds it behind its header, or nullptr.
  [[nodiscard]] ChunkHeader *allocate_for(size_t need, ChunkKind kind, uint32_t thread, size_t want,
                                          uint64_t *offset = nullptr);

  //! [MT] Counts a record that could not be written.
  void drop(RecordType type) { count(static_cast<size_t>(type)); }
  void count(size_t what) { header_->dropped[what].fetch_add(1, std::memory_order_relaxed); }

  FileHeader *header() const { return header_; }
  const std::string &path() const { return path_; }

  //! Asks the kernel for the pages now, in one call, instead of one fault each on the recording path.
  static void populate(void *begin, size_t size);

  //! [MT] The file is complete. Its mappings become memory that belongs to no file: late writers hit nothing.
  void finish(uint64_t end_ns);

  //! [FORK] In a child, where the file is not mapped: a handler that interrupted a writer may return to it.
  void become_child();

 private:
  struct Step {
    char *begin;
    size_t size;
  };

  int grow(size_t want);
  void remember(char *begin, size_t size);

  std::mutex mutex_;
  FileHeader *header_ = nullptr;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  char *cursor_ = nullptr;      // next chunk in the mapped step
  char *step_end_ = nullptr;    // end of the mapped step
  uint64_t cursor_offset_ = 0;  // the same in the file
  uint64_t file_size_ = 0;
  uint32_t sequence_ = 0;
  BlockArray<Step> steps_;  // all that was mapped
  uint32_t step_count_ = 0;
  bool closed_ = false;
  std::atomic<uint32_t> failing_{0};  // 0 = fine, else attempts since space ran out
};

}  // namespace warpline
