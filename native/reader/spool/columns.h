// The columns of a slice, as Arrow lays them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace warplens::reader {

struct Bits {
  std::vector<uint8_t> bytes;
  void reset(size_t rows) { bytes.assign((rows + 7) / 8, 0); }
  void set(size_t row) { bytes[row / 8] = static_cast<uint8_t>(bytes[row / 8] | (1U << (row % 8))); }
};

template <typename T>
struct Nullable {
  std::vector<T> values;
  Bits valid;
  // Values that are not valid may hold anything: nobody reads them, and clearing them all costs more than setting some.
  void reset(size_t rows) {
    values.resize(rows);
    valid.reset(rows);
  }
  void set(size_t row, T value) {
    values[row] = value;
    valid.set(row);
  }
};

// Dense codes for the few of many numbered things that a slice uses; no clearing between slices.
class Coder {
 public:
  void reset(size_t universe) {
    if (stamps_.size() < universe) {
      stamps_.resize(universe);
      codes_.resize(universe);
    }
    ++stamp_;
    used.clear();
  }
  int32_t code(uint32_t thing) {
    if (stamps_[thing] != stamp_) {
      stamps_[thing] = stamp_;
      codes_[thing] = static_cast<int32_t>(used.size());
      used.push_back(thing);
    }
    return codes_[thing];
  }
  std::vector<uint32_t> used;

 private:
  std::vector<uint32_t> stamps_;
  std::vector<int32_t> codes_;
  uint32_t stamp_ = 0;
};

// The same for pairs of a domain and a number in it.
class PairCoder {
 public:
  void reset() {
    used.clear();
    codes_.clear();
    last_ = kNothing;
  }
  int32_t code(uint16_t domain, uint32_t number) {
    const uint64_t pair = uint64_t{domain} << 32 | number;
    if (pair != last_) {
      const auto [at, added] = codes_.try_emplace(pair, static_cast<int32_t>(used.size()));
      if (added) {
        used.push_back(pair);
      }
      last_ = pair;
      last_code_ = at->second;
    }
    return last_code_;
  }
  std::vector<uint64_t> used;  // domain << 32 | number

 private:
  static constexpr uint64_t kNothing = UINT64_MAX;
  std::unordered_map<uint64_t, int32_t> codes_;
  uint64_t last_ = kNothing;
  int32_t last_code_ = 0;
};

struct Values {
  Nullable<int64_t> ints;
  Nullable<double> floats;
  void reset(size_t rows) {
    ints.reset(rows);
    floats.reset(rows);
  }
  // `flags`: those of a record (docs/dev/formats/spool.md).
  void set(size_t row, uint8_t flags, uint64_t payload);
};

// The extended payloads of a slice's rows: where the first blob of each lies.
struct BlobRefs {
  std::vector<int64_t> row;  // the event's id, or a sample's row in the slice
  std::vector<uint64_t> offset;
  std::vector<uint32_t> domain;
  void clear() {
    row.clear();
    offset.clear();
    domain.clear();
  }
  void add(int64_t event, uint64_t at, uint32_t of) {
    row.push_back(event);
    offset.push_back(at);
    domain.push_back(of);
  }
};

// The columns that everything with a time has.
struct InstantColumns {
  size_t rows = 0;
  std::vector<int64_t> process, thread, start;
  Nullable<int64_t> task;
  BlobRefs blobs;
  void reset(size_t rows);
};

// The columns that ranges and marks share.
struct EventColumns : InstantColumns {
  std::vector<int64_t> id;
  Nullable<int32_t> domain, category, message;
  Nullable<uint32_t> category_id, color;
  Values payload;
  Coder domains, messages;
  PairCoder categories;
  void reset(size_t rows, size_t strings);
};

struct RangeColumns : EventColumns {
  std::vector<int64_t> end;
  std::vector<int32_t> style, depth;
  Nullable<int64_t> end_thread, parent;
  Bits unfinished, inherited, clipped;
  void reset(size_t rows, size_t strings);
};

struct SampleColumns : InstantColumns {
  std::vector<int32_t> counter;
  PairCoder counters;
  Values value;
  std::vector<uint32_t> reason;  // why there is no value, where there is none
  void reset(size_t rows);
};

struct OperationColumns : InstantColumns {
  std::vector<uint32_t> domain, action;
  std::vector<uint64_t> object, value;
  void reset(size_t rows);
};

// Columns that are filled for one slice after the other. While somebody still reads those of a slice, the next one gets new ones.
template <typename Columns>
class Refilled {
 public:
  Columns &next() {
    if (columns_.use_count() > 1) {
      columns_ = std::make_shared<Columns>();
    }
    return *columns_;
  }
  Columns &operator*() const { return *columns_; }
  Columns *operator->() const { return columns_.get(); }
  std::shared_ptr<const void> shared() const { return columns_; }

 private:
  std::shared_ptr<Columns> columns_ = std::make_shared<Columns>();
};

}  // namespace warplens::reader
