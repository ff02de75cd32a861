// Maps a range's number to its row, for ranges that others name as their parent.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace warplens::reader {

// Ids are the agent's; of the many ranges of a program only those are kept that somebody names.
class ParentRows {
 public:
  // Keep what nobody has named yet, too: while a process goes on, nobody knows who will be named.
  void keep_all() { keeps_all_ = true; }
  size_t kept() const { return all_.size(); }
  void need(uint64_t id) {
    if (id == 0 || keeps_all_) {
      return;
    }
    ids_.push_back(id);
    if (ids_.size() > limit_) {
      tidy();
      limit_ = std::max(kFew, 2 * ids_.size());
    }
  }
  // After the last `need`, before the first `set`.
  void freeze() {
    tidy();
    rows_.assign(ids_.size(), -1);
  }
  void set(uint64_t id, int64_t row) {
    if (keeps_all_) {
      all_[id] = row;
    }
    if (const size_t at = find(id); at < ids_.size()) {
      rows_[at] = row;
    }
  }
  // -1: not recorded, or not yet.
  int64_t row(uint64_t id) const {
    if (keeps_all_) {
      const auto known = all_.find(id);
      return known == all_.end() ? -1 : known->second;
    }
    const size_t at = find(id);
    return at < rows_.size() ? rows_[at] : -1;
  }

 private:
  static constexpr size_t kFew = 4096;

  void tidy() {
    std::sort(ids_.begin(), ids_.end());
    ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
  }
  size_t find(uint64_t id) const {
    const auto at = std::lower_bound(ids_.begin(), ids_.end(), id);
    return at != ids_.end() && *at == id ? static_cast<size_t>(at - ids_.begin()) : ids_.size();
  }

  std::vector<uint64_t> ids_;
  std::vector<int64_t> rows_;
  size_t limit_ = kFew;
  bool keeps_all_ = false;
  std::unordered_map<uint64_t, int64_t> all_;
};

}  // namespace warplens::reader
