// Numbers the names and definitions of a process.
// Texts, domains, categories and other definitions, which programs hold as handles. They belong to
// the process, not to a recording: each recording gets all of them, at its start or when they come.
#pragma once

#include <cstring>
#include <mutex>
#include <string_view>

#include "file.h"
#include "passing.h"
#include "spool/system/memory.h"

namespace warplens {

template <typename Word>
inline uint64_t load(const char *at) {
  Word word;
  std::memcpy(&word, at, sizeof(word));
  return word;
}

//! [HOT] 64-bit content hash, never 0. Ends are read as whole words that may overlap, so short names need no loop.
inline uint64_t hash_text(const char *text, size_t size) {
  uint64_t h = size * 0x9e3779b97f4a7c15u;
  uint64_t tail = 0;
  if (size >= 8) {
    const char *last = text + size - 8;
    tail = load<uint64_t>(last);
    for (; text < last; text += 8) {
      h = (h ^ load<uint64_t>(text)) * 0xbf58476d1ce4e5b9u;
      h ^= h >> 32;
    }
  } else if (size >= 4) {
    tail = load<uint32_t>(text) | load<uint32_t>(text + size - 4) << 32;
  } else if (size > 0) {
    tail = load<uint8_t>(text) | load<uint8_t>(text + size / 2) << 8 | load<uint8_t>(text + size - 1) << 16;
  }
  h = (h ^ tail) * 0x94d049bb133111ebu;
  return (h ^ (h >> 29)) | 1;
}

//! Stores a record's head last and as one word: a reader sees all of the record or none.
inline void commit(void *record, RecordHead head) {
  uint64_t word;
  static_assert(sizeof(word) == sizeof(head));
  std::memcpy(&word, &head, sizeof(word));
  __atomic_store_n(static_cast<uint64_t *>(record), word, __ATOMIC_RELEASE);
}

//! Where names go in one recording: strings chunks, and chunks with records about the process.
class NameWriter {
 public:
  explicit NameWriter(SpoolFile &file) : file_(file) {}

  //! One thread at a time, numbers rise. False when there is no space.
  bool text(std::string_view text, uint32_t id);

  //! What was written under a number; empty where it was not, and in a buffered spool. One thread at a time, as `text`.
  std::string_view find(uint32_t id) const;

  //! [MT] Counted as lost when there is no space.
  void record(RecordHead head, const MetaRecord &record);

  SpoolFile &file() { return file_; }

 private:
  struct Block {
    uint32_t first;  // number in it
    const char *begin;
    const char *end;
  };

  SpoolFile &file_;
  Chunk texts_;
  BlockArray<Block> blocks_;  // of a mapped spool
  uint32_t block_count_ = 0;
  char *text_ = nullptr;
  char *text_end_ = nullptr;
  size_t next_texts_ = kPage;
  std::mutex mutex_;
  Chunk records_;
  MetaRecord *record_ = nullptr;
  MetaRecord *record_end_ = nullptr;
  size_t next_records_ = kPage;
};

// Callers hold Busy.
class Names {
 public:
  static constexpr size_t kLongest = 32768;  // longer names are cut there, at a UTF-8 border
  static constexpr size_t kLongestDefinition = size_t{1} << 20;

  Names() = default;
  Names(const Names &) = delete;
  Names &operator=(const Names &) = delete;

  //! [MT] The number of `text` (from 1), or 0 when it cannot be stored now; then it is tried again next time.
  uint32_t intern(std::string_view text, size_t longest = kLongest);

  //! [MT] As `intern`, for what the program holds no handle of, such as the name of a range: when there are very many such names, the
  //! number is good for this recording only, and the same name may get another one later.
  uint32_t passing(std::string_view text);

  //! [MT] The text of this number is needed by other recordings, too: a child of a fork has a range that is called so.
  void hold(uint32_t id);

  //! [MT] The text of a number that `intern` gave; empty for another one.
  std::string_view text(uint32_t id) const {
    const Text *text = texts_.at(id);
    return text == nullptr || text->at == nullptr ? std::string_view()
                                                  : std::string_view(text->at, text->size);
  }

  //! [MT] The number of domain `name`, the same for the same name; 0xffff when there are too many.
  uint16_t domain(std::string_view name);

  //! [MT] A category or the name of a thread: kept, and written where it is new.
  void describe(RecordHead head, const MetaRecord &record);

  //! [MT] JSON about an object. `kind` tells apart objects with the same number and is no part of the file; 0: the definition
  //! will not come again, and only this recording needs it. False when it could not be stored.
  bool define(uint16_t domain, uint32_t kind, const MetaRecord &record, std::string_view json);

  //! [MT] The object is gone: later recordings need not know it.
  void forget(uint16_t domain, uint32_t kind, uint64_t id);

  //! [MT] From now on everything goes to `writer` too; what there is already is written at once.
  void attach(NameWriter &writer);

  //! [MT] The recording ends with `last`. No name is made meanwhile: whatever a record of it speaks of is in it.
  template <typename Last>
  void detach(const Last &last) {
    std::lock_guard lock(mutex_);
    last();
    writer_ = nullptr;
  }

  //! [FORK] In a child: forgets the recording, and whatever other threads were in the middle of. Safe to call on any state.
  void become_child();

  //! [MT] Counts something that was lost, if there is a recording.
  void count(size_t what);

 private:
  static constexpr size_t kFirstRoom = size_t{64} << 10;
  static constexpr size_t kLastRoom = size_t{1} << 20;
  // So much of names is kept, and what programs hold handles of.
  static constexpr uint32_t kMostKept = uint32_t{1} << 16;
  static constexpr size_t kMostKeptBytes = size_t{4} << 20;
  struct Text {
    const char *at;
    uint32_t size;
    uint32_t check;  // half of the hash: in a fork child tells a text that another thread was just storing
  };

  struct Kept {
    MetaRecord record;
    uint32_t kind;
    uint32_t next_free;
  };
  struct Subject;

  static Subject subject_of(const Kept &kept);
  uint64_t hash_of_text(uint32_t id) const;
  uint64_t hash_of_record(uint32_t number) const;
  uint32_t find(std::string_view text, uint64_t hash) const;
  uint32_t find(const Subject &subject) const;
  bool store(uint32_t id, std::string_view text, uint64_t hash);
  bool keep(const Kept &kept);
  uint32_t intern_locked(std::string_view text, size_t longest);
  // For a text that will not come again: written to the recording (0 without one), but not kept.
  uint32_t write_once(std::string_view text);
  void check();

  std::mutex mutex_;
  NameWriter *writer_ = nullptr;
  bool stale_ = false;  // in a fork child: the indexes must be made again
  BlockArray<Text> texts_;
  uint32_t text_count_ = 0;
  HashIndex text_index_;
  uint32_t kept_count_ = 0;
  size_t kept_bytes_ = 0;
  PassingNames passing_;
  char *room_ = nullptr;
  size_t room_size_ = 0;
  size_t next_room_ = kFirstRoom;
  BlockArray<Kept> records_;
  uint32_t record_count_ = 0;
  uint32_t free_record_ = 0;
  HashIndex record_index_;
  uint32_t domain_count_ = 0;
};

}  // namespace warplens
