// Writes chunks of a file whose space cannot be reserved.
// Chunks lie in memory and are written when they are full; a thread writes the new part of the
// others every 100 ms. A write that fails costs records, which are counted.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>

#include "spool/system/memory.h"
#include "used_chunks.h"
#include "warplens/format.h"

namespace warplens {

class Buffers {
 public:
  static constexpr unsigned kEveryMs = 100;

  //! `header` stands for page 0 of the file at `path`; both outlive this.
  Buffers(const std::string &path, dev_t device, ino_t inode, FileHeader *header)
      : path_(path), device_(device), inode_(inode), header_(header) {}
  Buffers(const Buffers &) = delete;
  Buffers &operator=(const Buffers &) = delete;
  //! Waits for the thread.
  ~Buffers();

  //! [MT] Zeroed memory for a chunk; null when memory is out. `fresh` is what was mapped for it and must be seen to at a fork.
  //! `again`: that place in the file has been written before.
  ChunkHeader *take(uint64_t offset, size_t size, bool again, Chunk *fresh);

  //! [MT] Writes a chunk that is full. Its memory is used again.
  void write_out(ChunkHeader *chunk);

  //! [MT] Writes all that is new, the header last.
  void flush();

  //! [MT] The same for the last time: what still comes goes nowhere, and the header is not touched any more.
  void finish();

 private:
  struct Live {
    char *begin;  // null: this place is free
    size_t size;
    uint64_t offset;
    uint64_t written;  // this much of it is in the file
    uint64_t hash;     // of the contents written, where they change in place
    bool again;        // what lies in the file is older and must be seen as such while it is replaced
  };
  // Memory that waits for the next chunk of its size.
  struct Spare {
    Spare *next;
  };
  static constexpr size_t kSizes = 16;

  static void *run(void *self);
  void start();
  void stop();
  void flush_locked();
  int open_file() const;
  void write(int fd, Live &live);
  void write_header(int fd);
  bool put(int fd, const char *from, size_t size, uint64_t offset, size_t *done);
  void note(int error);
  static uint64_t end_of_contents(const Live &live);
  static void count(const Live &live, uint64_t from, std::atomic<uint64_t> *dropped);

  const std::string &path_;
  const dev_t device_;
  const ino_t inode_;
  FileHeader *const header_;

  std::mutex table_;  // of what follows; never held while something is written
  BlockArray<Live> live_;
  uint32_t live_count_ = 0;
  Spare *spares_[kSizes] = {};

  std::mutex writing_;
  std::atomic<uint64_t> unwritten_[kDropSlots] =
      {};                    // by what `dropped` counts: in memory, but not in the file
  char *staging_ = nullptr;  // a copy of a table of open ranges
  size_t staging_size_ = 0;

  std::atomic<bool> started_{false};
  std::atomic<bool> threadless_{false};
  std::atomic<uint32_t> stopping_{0};
  std::atomic<uint32_t> gone_{0};
};

}  // namespace warplens
