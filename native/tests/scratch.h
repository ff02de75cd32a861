// A spool in a separate folder, and a reader's view of it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "spool/process_log.h"
#include "tests/check.h"

using namespace warplens;

inline const ClockParams kClock{ClockKind::monotonic, 0, 0, 0, 1};

struct Scratch {
  Scratch() {
    char name[] = "warplens-test-XXXXXX";
    directory = mkdtemp(name) != nullptr ? name : ".";
    path = directory + "/test.spool";
  }
  ~Scratch() {
    unlink(path.c_str());
    rmdir(directory.c_str());
  }
  std::string directory;
  std::string path;
};

// Chunks of one kind, walked as a reader would.
inline std::vector<const ChunkHeader *> chunks(const std::string &path, std::vector<char> &bytes,
                                               ChunkKind kind) {
  bytes.clear();
  if (FILE *file = std::fopen(path.c_str(), "rb")) {
    char buffer[65536];
    for (size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) {
      bytes.insert(bytes.end(), buffer, buffer + n);
    }
    std::fclose(file);
  }
  std::vector<const ChunkHeader *> found;
  const auto *header = reinterpret_cast<const FileHeader *>(bytes.data());
  for (uint64_t at = header->first_chunk; at < std::min(header->chunk_end.load(), bytes.size());) {
    const auto *chunk = reinterpret_cast<const ChunkHeader *>(bytes.data() + at);
    if (chunk->magic == 0 && header->flags == kSpoolBuffered) {  // nothing of it was written
      at += kPage;
      continue;
    }
    CHECK(chunk->magic == kChunkMagic);
    if (chunk->kind == kind) {
      found.push_back(chunk);
    }
    at += chunk->size;
  }
  return found;
}

inline size_t count(const std::string &path, ChunkKind kind, RecordType type) {
  std::vector<char> bytes;
  size_t n = 0;
  for (const ChunkHeader *chunk : chunks(path, bytes, kind)) {
    for (size_t at = sizeof(ChunkHeader); at + chunk->stride <= chunk->size; at += chunk->stride) {
      n += reinterpret_cast<const RecordHead *>(reinterpret_cast<const char *>(chunk) + at)->type == type ? 1
                                                                                                          : 0;
    }
  }
  return n;
}

// Slots whose ranges have ended but could not be written elsewhere, by the name of the range.
inline size_t closed(const std::string &path, uint32_t name) {
  std::vector<char> bytes;
  size_t n = 0;
  for (const ChunkHeader *chunk : chunks(path, bytes, ChunkKind::open)) {
    for (size_t at = sizeof(ChunkHeader); at + chunk->stride <= chunk->size; at += chunk->stride) {
      const auto *slot = reinterpret_cast<const EventRecord *>(reinterpret_cast<const char *>(chunk) + at);
      bool is_closed = slot->head.type != RecordType::none && (slot->head.flags & kFlagClosed) != 0;
      CHECK(!is_closed || (slot->start != 0 && slot->end != 0));
      n += is_closed && slot->head.name == name ? 1 : 0;
    }
  }
  return n;
}

inline Label named(uint32_t name) {
  Label label;
  label.name = name;
  return label;
}
