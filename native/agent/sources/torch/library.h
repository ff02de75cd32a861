// The functions of PyTorch that the agent calls, found by name in the loaded library.
#pragma once

#include <string>

#include "drivers/torch.h"

namespace warplens::agent::torch {

struct Library {
  const char *(*name)(const TorchRecord *record);
  bool (*is_async)(const TorchRecord *record);
  uint64_t (*add_callback)(TorchCallback callback);
  void (*remove_callback)(uint64_t handle);
  // Null where this version has none.
  TorchVector<TorchVector<int64_t>> (*input_sizes)(const TorchRecord &record, bool flat);
  TorchVector<TorchString> (*input_types)(const TorchRecord &record);
  void (*give_back)(void *memory);
  size_t sequence_at;  // offset of the sequence number in a record
};

//! Finds all of it in libtorch_cpu.so at `path`, and tries it with one record of ours. Empty, or why operators cannot be recorded;
//! `version` as PyTorch says it. The library is kept loaded from then on.
std::string open_library(const char *path, Library &library, std::string &version);

inline int64_t sequence_of(const Library &library, const TorchRecord &record) {
  return *reinterpret_cast<const int64_t *>(reinterpret_cast<const char *>(&record) + library.sequence_at);
}

}  // namespace warplens::agent::torch
