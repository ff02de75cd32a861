// Wide chunks as a reader sees them.
#pragma once

#include <cstring>
#include <new>

#include "spool/window.h"
#include "tests/scratch.h"
#include "warplens/cuda_records.h"

// As a launcher makes it: the first window is open.
inline ControlPage *control_page() {
  auto *page = new (map_memory(kControlSize)) ControlPage{};
  windows_of(page)->open_ns.store(1);
  page->gate.store(1);
  return page;
}

// All records of a type that a reader finds.
template <typename Record>
std::vector<Record> read(const std::string &path, RecordType type) {
  std::vector<char> bytes;
  std::vector<Record> found;
  for (const ChunkHeader *chunk : chunks(path, bytes, ChunkKind::wide)) {
    if (chunk->type != type || chunk->sequence == kRenewing) {
      continue;
    }
    CHECK(chunk->stride == sizeof(Record));
    CHECK(chunk->thread == kNoThread);
    for (size_t at = sizeof(ChunkHeader); at + chunk->stride <= chunk->size; at += chunk->stride) {
      Record record;
      std::memcpy(&record, reinterpret_cast<const char *>(chunk) + at, sizeof(record));
      if (record.head.type == RecordType::none) {
        break;
      }
      CHECK(record.head.type == type);
      found.push_back(record);
    }
  }
  return found;
}
