// Interns names, and writes them into chunks.
#include "names.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace warplens {
namespace {

constexpr uint16_t kTooManyDomains = 0xffff;

std::string_view cut(std::string_view text, size_t longest) {
  if (text.size() <= longest) {
    return text;
  }
  size_t size = longest;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) {
    --size;
  }
  return text.substr(0, size);
}

uint32_t check_of(uint64_t hash) {
  return static_cast<uint32_t>(hash >> 24) | 1;
}

}  // namespace

// What makes two records speak of the same thing: the later one replaces the earlier.
struct Names::Subject {
  RecordType type;
  uint16_t domain;
  uint32_t number;
  uint64_t id;

  bool operator==(const Subject &) const = default;
  uint64_t hash() const {
    uint64_t words[3] = {static_cast<uint64_t>(type) << 16 | domain, number, id};
    return hash_text(reinterpret_cast<const char *>(words), sizeof(words));
  }
};

Names::Subject Names::subject_of(const Kept &kept) {
  const RecordHead &head = kept.record.head;
  switch (head.type) {
    case RecordType::domain:
      return {head.type, 0, head.name, 0};
    case RecordType::category:
      return {head.type, head.domain, kept.record.category, 0};
    case RecordType::thread_name:
      return {head.type, 0, kept.record.tid, kept.record.category};
    default:
      return {head.type, head.domain, kept.kind, kept.record.id};
  }
}

bool NameWriter::text(std::string_view text, uint32_t id) {
  size_t size = (sizeof(StringHead) + text.size() + 7) / 8 * 8;
  if (static_cast<size_t>(text_end_ - text_) < size) {
    Chunk chunk =
        file_.allocate_lasting(ChunkKind::strings, 0, kNoThread, next_texts_, RecordType::none, size);
    if (!chunk) {
      return false;
    }
    file_.retire(std::exchange(texts_, chunk));
    next_texts_ = std::min(next_texts_ * 4, size_t{1} << 20);
    text_ = chunk.contents();
    text_end_ = chunk.end();
    Block *block = file_.is_buffered() ? nullptr : blocks_.make(block_count_);
    if (block != nullptr) {
      *block = {id, text_, text_end_};
      ++block_count_;
    }
  }
  auto *head = reinterpret_cast<StringHead *>(text_);
  head->id = id;
  std::memcpy(head + 1, text.data(), text.size());
  std::atomic_ref(head->length_plus_1)
      .store(static_cast<uint32_t>(text.size() + 1), std::memory_order_release);
  text_ += size;
  return true;
}

std::string_view NameWriter::find(uint32_t id) const {
  uint32_t low = 0;
  for (uint32_t high = block_count_; low < high;) {  // the first block that begins behind it
    uint32_t middle = low + (high - low) / 2;
    if (blocks_.at(middle)->first <= id) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == 0) {
    return {};
  }
  const Block &block = *blocks_.at(low - 1);
  for (const char *at = block.begin; static_cast<size_t>(block.end - at) >= sizeof(StringHead);) {
    const auto *head = reinterpret_cast<const StringHead *>(at);
    if (head->length_plus_1 == 0) {
      break;
    }
    if (head->id == id) {
      return {reinterpret_cast<const char *>(head + 1), head->length_plus_1 - 1};
    }
    at += (sizeof(StringHead) + head->length_plus_1 - 1 + 7) / 8 * 8;
  }
  return {};
}

void NameWriter::record(RecordHead head, const MetaRecord &record) {
  std::lock_guard lock(mutex_);
  if (record_ == record_end_) {
    Chunk chunk = file_.allocate_lasting(ChunkKind::records, sizeof(MetaRecord), kNoThread, next_records_);
    if (!chunk) {
      file_.drop(head.type);
      return;
    }
    file_.retire(std::exchange(records_, chunk));
    next_records_ = std::min(next_records_ * 2, size_t{256} << 10);
    record_ = reinterpret_cast<MetaRecord *>(chunk.contents());
    record_end_ = record_ + (chunk.size - sizeof(ChunkHeader)) / sizeof(MetaRecord);
  }
  std::memcpy(reinterpret_cast<char *>(record_) + sizeof(RecordHead),
              reinterpret_cast<const char *>(&record) + sizeof(RecordHead),
              sizeof(MetaRecord) - sizeof(RecordHead));
  commit(record_, head);
  ++record_;
}

uint64_t Names::hash_of_text(uint32_t id) const {
  const Text &text = *texts_.at(id);
  return hash_text(text.at, text.size);
}

uint64_t Names::hash_of_record(uint32_t number) const {
  return subject_of(*records_.at(number)).hash();
}

uint32_t Names::find(std::string_view text, uint64_t hash) const {
  return text_index_.find(hash, [&](uint32_t id) {
    const Text &kept = *texts_.at(id);
    return kept.size == text.size() && std::memcmp(kept.at, text.data(), text.size()) == 0;
  });
}

uint32_t Names::find(const Subject &subject) const {
  return record_index_.find(subject.hash(),
                            [&](uint32_t i) { return subject_of(*records_.at(i)) == subject; });
}

// Keeps the text under a number; false when memory is out.
bool Names::store(uint32_t id, std::string_view text, uint64_t hash) {
  Text *kept = id == 0 ? nullptr : texts_.make(id);
  if (kept == nullptr || !text_index_.reserve([this](uint32_t other) { return hash_of_text(other); })) {
    return false;
  }
  if (room_size_ < text.size()) {
    size_t size = std::max(next_room_, (text.size() + kPage - 1) / kPage * kPage);
    char *room = static_cast<char *>(map_memory(size));
    if (room == nullptr) {
      return false;
    }
    room_ = room;
    room_size_ = size;
    next_room_ = std::min(next_room_ * 2, kLastRoom);
  }
  std::memcpy(room_, text.data(), text.size());
  *kept = {room_, static_cast<uint32_t>(text.size()), check_of(hash)};
  room_ += text.size();
  room_size_ -= text.size();
  text_index_.add(hash, id);
  ++kept_count_;
  kept_bytes_ += text.size();
  return true;
}

// In a fork child the arrays are whole but for what other threads were just adding; the indexes may be anything.
void Names::check() {
  if (!stale_) {
    return;
  }
  stale_ = false;
  room_size_ = 0;
  free_record_ = 0;
  text_index_.abandon();
  record_index_.abandon();
  for (uint32_t id = 1; id <= text_count_; ++id) {
    Text *text = texts_.at(id);
    if (text == nullptr || text->at == nullptr) {
      continue;
    }
    uint64_t hash = hash_text(text->at, text->size);
    if (check_of(hash) == text->check &&
        text_index_.reserve([this](uint32_t other) { return hash_of_text(other); })) {
      text_index_.add(hash, id);
    } else {
      *text = {};
    }
  }
  domain_count_ = 0;
  for (uint32_t i = 1; i <= record_count_; ++i) {
    const Kept *kept = records_.at(i);
    if (kept == nullptr || kept->record.head.type == RecordType::none) {
      continue;
    }
    if (kept->record.head.type == RecordType::domain) {
      domain_count_ = std::max(domain_count_, uint32_t{kept->record.head.domain});
    }
    if (record_index_.reserve([this](uint32_t other) { return hash_of_record(other); })) {
      record_index_.add(hash_of_record(i), i);
    }
  }
}

uint32_t Names::intern(std::string_view text, size_t longest) {
  std::lock_guard lock(mutex_);
  check();
  return intern_locked(text, longest);
}

uint32_t Names::intern_locked(std::string_view text, size_t longest) {
  bool too_long = text.size() > longest;
  text = cut(text, longest);
  uint64_t hash = hash_text(text.data(), text.size());
  if (uint32_t id = find(text, hash)) {
    return id;
  }
  // Written first: a number that programs hold must not be without its text.
  if (writer_ != nullptr && !writer_->text(text, text_count_ + 1)) {
    writer_->file().drop(RecordType::none);
    return 0;
  }
  if (!store(text_count_ + 1, text, hash) && writer_ == nullptr) {
    return 0;  // out of memory; in a recording, the number is good for this once
  }
  if (writer_ != nullptr && too_long) {
    writer_->file().count(kCutNames);
  }
  return ++text_count_;
}

uint32_t Names::passing(std::string_view text) {
  std::lock_guard lock(mutex_);
  check();
  if (kept_count_ < kMostKept && kept_bytes_ + text.size() <= kMostKeptBytes) {
    return intern_locked(text, kLongest);
  }
  bool too_long = text.size() > kLongest;
  text = cut(text, kLongest);
  uint64_t hash = hash_text(text.data(), text.size());
  auto size = static_cast<uint32_t>(text.size());
  uint32_t id = find(text, hash);
  if (id == 0) {
    id = passing_.find(hash, size);
  }
  if (id == 0 && (id = write_once(text)) != 0) {
    passing_.put(hash, size, id);
    if (too_long) {
      writer_->file().count(kCutNames);
    }
  }
  return id;
}

void Names::hold(uint32_t id) {
  std::lock_guard lock(mutex_);
  check();
  if (id == 0 || id > text_count_ || writer_ == nullptr || !text(id).empty()) {
    return;
  }
  std::string_view text = writer_->find(id);
  if (!text.empty()) {
    store(id, text, hash_text(text.data(), text.size()));
  }
}

uint32_t Names::write_once(std::string_view text) {
  if (writer_ == nullptr) {
    return 0;
  }
  uint32_t id = text_count_ + 1;
  if (id == 0 || !writer_->text(cut(text, kLongestDefinition), id)) {
    writer_->file().drop(RecordType::none);
    return 0;
  }
  text_count_ = id;
  return id;
}

uint16_t Names::domain(std::string_view name) {
  std::lock_guard lock(mutex_);
  check();
  uint32_t text = intern_locked(name, kLongest);
  Kept kept{};
  kept.record.head = {RecordType::domain, 0, 0, text};
  if (uint32_t found = find(subject_of(kept))) {
    return records_.at(found)->record.head.domain;
  }
  auto number = static_cast<uint16_t>(domain_count_ + 1);
  kept.record.head.domain = number;
  if (text == 0 || number == kTooManyDomains || !keep(kept)) {
    if (writer_ != nullptr) {
      writer_->file().drop(RecordType::domain);
    }
    return kTooManyDomains;
  }
  domain_count_ = number;
  if (writer_ != nullptr) {
    writer_->record(kept.record.head, kept.record);
  }
  return number;
}

// False when memory is out: then a later recording will show the number instead of the name.
bool Names::keep(const Kept &kept) {
  uint32_t number = free_record_ != 0 ? free_record_ : record_count_ + 1;
  Kept *place = number == 0 ? nullptr : records_.make(number);
  if (place == nullptr || !record_index_.reserve([this](uint32_t i) { return hash_of_record(i); })) {
    return false;
  }
  if (number == free_record_) {
    free_record_ = place->next_free;
  } else {
    record_count_ = number;
  }
  *place = kept;
  record_index_.add(hash_of_record(number), number);
  return true;
}

void Names::describe(RecordHead head, const MetaRecord &record) {
  Kept kept{record, 0, 0};
  kept.record.head = head;
  std::lock_guard lock(mutex_);
  check();
  if (uint32_t found = find(subject_of(kept))) {
    if (records_.at(found)->record.head.name == head.name) {
      return;  // some programs name the same things over and over
    }
    *records_.at(found) = kept;
  } else {
    keep(kept);
  }
  if (writer_ != nullptr) {
    writer_->record(head, record);
  }
}

bool Names::define(uint16_t domain, uint32_t kind, const MetaRecord &record, std::string_view json) {
  std::lock_guard lock(mutex_);
  check();
  // Under the same lock: the text must be in the recording that the record goes to.
  uint32_t text = kind == 0 ? write_once(json) : intern_locked(json, kLongestDefinition);
  if (text == 0) {
    if (writer_ != nullptr) {
      writer_->file().drop(RecordType::define);
    }
    return false;
  }
  RecordHead head{RecordType::define, 0, domain, text};
  if (kind != 0) {
    Kept kept{record, kind, 0};
    kept.record.head = head;
    kept.record.thread = kNoThread;  // in a later recording
    if (uint32_t found = find(subject_of(kept))) {
      if (records_.at(found)->record.head.name == text) {
        return true;
      }
      *records_.at(found) = kept;
    } else {
      keep(kept);
    }
  }
  if (writer_ != nullptr) {
    writer_->record(head, record);
  }
  return true;
}

void Names::forget(uint16_t domain, uint32_t kind, uint64_t id) {
  Subject subject{RecordType::define, domain, kind, id};
  std::lock_guard lock(mutex_);
  check();
  if (uint32_t found = find(subject)) {
    record_index_.remove(subject.hash(), found, [this](uint32_t i) { return hash_of_record(i); });
    Kept *kept = records_.at(found);
    *kept = {};
    kept->next_free = free_record_;
    free_record_ = found;
  }
}

void Names::attach(NameWriter &writer) {
  std::lock_guard lock(mutex_);
  check();
  passing_.forget();
  writer_ = &writer;
  for (uint32_t id = 1; id <= text_count_; ++id) {
    const Text *text = texts_.at(id);
    if (text != nullptr && text->at != nullptr && !writer.text({text->at, text->size}, id)) {
      writer.file().drop(RecordType::none);
    }
  }
  for (uint32_t i = 1; i <= record_count_; ++i) {
    const Kept *kept = records_.at(i);
    if (kept != nullptr && kept->record.head.type != RecordType::none) {
      writer.record(kept->record.head, kept->record);
    }
  }
}

void Names::become_child() {
  new (&mutex_) std::mutex;
  passing_.abandon();
  writer_ = nullptr;
  stale_ = true;
}

void Names::count(size_t what) {
  std::lock_guard lock(mutex_);
  if (writer_ != nullptr) {
    writer_->file().count(what);
  }
}

}  // namespace warplens
