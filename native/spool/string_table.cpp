// Interning, and the strings chunks.
#include "string_table.h"

#include <algorithm>

namespace warpline {
namespace {

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

}  // namespace

bool StringTable::write(std::string_view text, uint32_t id, SpoolFile &file) {
  size_t size = (sizeof(StringHead) + text.size() + 7) / 8 * 8;
  if (static_cast<size_t>(end_ - cursor_) < size) {
    ChunkHeader *chunk = file.allocate_for(size, ChunkKind::strings, kNoThread, next_chunk_);
    if (chunk == nullptr) {
      return false;
    }
    next_chunk_ = std::min(next_chunk_ * 4, size_t{1} << 20);
    cursor_ = reinterpret_cast<char *>(chunk + 1);
    end_ = reinterpret_cast<char *>(chunk) + chunk->size;
  }
  auto *head = reinterpret_cast<StringHead *>(cursor_);
  head->id = id;
  std::memcpy(head + 1, text.data(), text.size());
  std::atomic_ref(head->length_plus_1)
      .store(static_cast<uint32_t>(text.size() + 1), std::memory_order_release);
  cursor_ += size;
  return true;
}

uint32_t StringTable::intern(std::string_view text, SpoolFile &file, size_t longest) {
  bool too_long = text.size() > longest;
  text = cut(text, longest);
  std::lock_guard lock(mutex_);
  auto found = ids_.find(text);
  if (found != ids_.end()) {
    return found->second;
  }
  uint32_t id = last_id_ + 1;
  if (id == 0 || !write(text, id, file)) {
    file.drop(RecordType::none);
    return 0;
  }
  last_id_ = id;
  if (too_long) {
    file.count(kCutNames);
  }
  try {
    texts_.push_back({id, std::string(text)});
    ids_.emplace(texts_.back().text, id);
  } catch (...) {
    // Out of memory: the program may cope with that, so must we. The text is in the file, and its id is good.
  }
  return id;
}

uint32_t StringTable::write_once(std::string_view text, SpoolFile &file) {
  std::lock_guard lock(mutex_);
  uint32_t id = last_id_ + 1;
  if (id == 0 || !write(cut(text, kLongestDefinition), id, file)) {
    file.drop(RecordType::none);
    return 0;
  }
  last_id_ = id;
  return id;
}

void StringTable::adopt(StringTable &parent, SpoolFile &file) {
  std::lock_guard lock(mutex_);  // not the parent's: whoever held it at the fork is not in this process
  last_id_ = parent.last_id_;
  texts_ = std::move(parent.texts_);
  ids_ = std::move(parent.ids_);
  for (const auto &[id, text] : texts_) {
    if (!write(text, id, file)) {
      file.drop(RecordType::none);
    }
  }
}

}  // namespace warpline
