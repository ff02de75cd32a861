// Interning, and the strings chunks.
#include "string_table.h"

#include <algorithm>

namespace warpline {
namespace {

std::string_view cut(std::string_view text) {
  if (text.size() <= StringTable::kLongest) {
    return text;
  }
  size_t size = StringTable::kLongest;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80) {
    --size;
  }
  return text.substr(0, size);
}

}  // namespace

bool StringTable::write(std::string_view text, uint32_t id, SpoolFile &file) {
  size_t size = (sizeof(StringHead) + text.size() + 7) / 8 * 8;
  if (static_cast<size_t>(end_ - cursor_) < size) {
    ChunkHeader *chunk =
        file.allocate(ChunkKind::strings, 0, kNoThread, std::max(next_chunk_, size + sizeof(ChunkHeader)));
    if (chunk == nullptr || chunk->size < size + sizeof(ChunkHeader)) {
      return false;  // a chunk that came out too small stays empty; the next one starts a new step of the file
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

uint32_t StringTable::intern(std::string_view text, SpoolFile &file) {
  bool too_long = text.size() > kLongest;
  text = cut(text);
  std::lock_guard lock(mutex_);
  auto found = ids_.find(text);
  if (found != ids_.end()) {
    return found->second;
  }
  auto id = static_cast<uint32_t>(texts_.size() + 1);
  // One retry: a chunk at the end of a step may be too small for a long text.
  if (id == 0 || (!write(text, id, file) && !write(text, id, file))) {
    file.drop(RecordType::none);
    return 0;
  }
  if (too_long) {
    file.count(kCutNames);
  }
  try {
    texts_.emplace_back(text);
    ids_.emplace(texts_.back(), id);
  } catch (...) {  // out of memory: the program may cope with that, so must we
    file.drop(RecordType::none);
    return 0;
  }
  return id;
}

void StringTable::adopt(StringTable &parent, SpoolFile &file) {
  std::lock_guard lock(mutex_);  // not the parent's: whoever held it at the fork is not in this process
  texts_ = std::move(parent.texts_);
  ids_ = std::move(parent.ids_);
  uint32_t id = 1;
  for (const std::string &text : texts_) {
    if (!write(text, id, file) && !write(text, id, file)) {
      file.drop(RecordType::none);
    }
    ++id;
  }
}

}  // namespace warpline
