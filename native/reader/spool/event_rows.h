// Rows of one kind of event, column by column, in pieces: growing moves nothing, and a column that was fetched is given back.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "reader/chrome/trace_fields.h"

namespace warplens::reader {

using Values = std::array<int64_t, kFields>;

class EventRows {
 public:
  explicit EventRows(Kind kind) : columns_(&columns_of(kind)) {}

  void add(const Values &values) {
    const size_t within = rows_ % kPiece;
    if (within == 0) {
      for (size_t i = 0; i < columns_->count; ++i) {
        pieces_[i].push_back(std::make_unique_for_overwrite<char[]>(kPiece * width(i)));
      }
    }
    for (size_t i = 0; i < columns_->count; ++i) {
      const int64_t value = values[columns_->items[i].field];
      char *const piece = pieces_[i].back().get();
      if (columns_->items[i].wide) {
        std::memcpy(piece + within * 8, &value, 8);
      } else {
        const int32_t narrow =
            value > INT32_MAX || value <= INT32_MIN ? kNull32 : static_cast<int32_t>(value);
        std::memcpy(piece + within * 4, &narrow, 4);
      }
    }
    ++rows_;
  }

  size_t size() const { return rows_; }

  // Bytes of a column's values; 0: the kind has no such column.
  size_t width_of(Field field) const {
    for (size_t i = 0; i < columns_->count; ++i) {
      if (columns_->items[i].field == field) {
        return width(i);
      }
    }
    return 0;
  }

  // Copies a column and gives back its memory; `out` has room for all rows. False: the kind has no such column, or it was taken.
  bool take(Field field, char *out) {
    for (size_t i = 0; i < columns_->count; ++i) {
      if (columns_->items[i].field == field && pieces_[i].size() == (rows_ + kPiece - 1) / kPiece) {
        for (size_t row = 0, piece = 0; row < rows_; row += kPiece, ++piece) {
          const size_t count = rows_ - row < kPiece ? rows_ - row : kPiece;
          std::memcpy(out + row * width(i), pieces_[i][piece].get(), count * width(i));
          pieces_[i][piece].reset();
        }
        pieces_[i].clear();
        return true;
      }
    }
    return false;
  }

 private:
  static constexpr size_t kPiece = size_t{1} << 14;

  size_t width(size_t column) const { return columns_->items[column].wide ? 8 : 4; }

  const Columns *columns_;
  std::array<std::vector<std::unique_ptr<char[]>>, kMostColumns> pieces_;
  size_t rows_ = 0;
};

}  // namespace warplens::reader
