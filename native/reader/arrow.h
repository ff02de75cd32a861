// Exports columns by Arrow's C data interface.
// Columns have names and types, so a reader cannot mistake one for another. The structures are
// those of https://arrow.apache.org/docs/format/CDataInterface.html.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "door.h"

extern "C" {

struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  ArrowSchema **children;
  ArrowSchema *dictionary;
  void (*release)(ArrowSchema *);
  void *private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  ArrowArray **children;
  ArrowArray *dictionary;
  void (*release)(ArrowArray *);
  void *private_data;
};

}  // extern "C"

namespace warplens::reader {

// A table as it crosses: a struct array, and what it consists of.
struct ArrowTable {
  ArrowArray array;
  ArrowSchema schema;
};

// The name of a type of numbers.
template <typename T>
constexpr const char *arrow_format() {
  constexpr bool is_signed = std::is_signed_v<T>;
  if constexpr (std::is_floating_point_v<T>) {
    return sizeof(T) == 8 ? "g" : "f";
  } else if constexpr (sizeof(T) == 8) {
    return is_signed ? "l" : "L";
  } else if constexpr (sizeof(T) == 4) {
    return is_signed ? "i" : "I";
  } else {
    static_assert(sizeof(T) == 1);
    return is_signed ? "c" : "C";
  }
}

// Columns of one length for Python. Their memory is not copied: it is the owner's, who lives until the last column is released.
class ArrowColumns {
 public:
  using Valid = std::vector<uint8_t>;  // a bit for each row that has a value; null pointer: all have one

  ArrowColumns(std::shared_ptr<const void> owner, size_t rows) : owner_(std::move(owner)), rows_(rows) {}

  // A column of numbers.
  template <typename T>
  void add(const char *name, const std::vector<T> &values, const Valid *valid = nullptr) {
    add_buffer(name, arrow_format<T>(), values.data(), values.size(), valid);
  }
  // A column of places in `dictionary`.
  template <typename T>
  void add_coded(const char *name, const std::vector<int32_t> &codes, const std::vector<T> &dictionary,
                 const Valid *valid = nullptr) {
    add(name, codes, valid);
    columns_.back().dictionary = {arrow_format<T>(), dictionary.data(), dictionary.size()};
  }
  // A column of bools, a bit each.
  void add_bits(const char *name, const std::vector<uint8_t> &bits) {
    add_buffer(name, "b", bits.data(), bits.size() * 8, nullptr);
  }

  //! Hands the columns over to the caller. Once.
  ArrowTable release();

 private:
  struct Dictionary {
    const char *format = nullptr;  // null: none
    const void *values = nullptr;
    size_t size = 0;
  };
  struct Column {
    const char *name;
    const char *format;
    const void *values;
    const void *valid;
    Dictionary dictionary;
  };

  void add_buffer(const char *name, const char *format, const void *values, size_t size, const Valid *valid);

  std::shared_ptr<const void> owner_;
  size_t rows_;
  std::vector<Column> columns_;
};

// Which rows of a column have a value.
struct ValidRows {
  const uint8_t *bits = nullptr;  // null: all
  uint64_t offset = 0;

  bool operator[](uint64_t row) const {
    const uint64_t bit = row + offset;
    return bits == nullptr || (bits[bit / 8] >> (bit % 8) & 1) != 0;
  }
};

template <typename T>
struct GivenNumbers {
  const T *values = nullptr;  // null: there is no such column
  ValidRows valid;

  bool has(uint64_t row) const { return values != nullptr && valid[row]; }
};

// Values by code; a row that is not valid may have any code.
template <typename T>
struct GivenCodes {
  const int32_t *codes = nullptr;  // null: there is no such column
  const T *values = nullptr;
  uint64_t size = 0;  // of the values
  ValidRows valid;

  bool has(uint64_t row) const { return codes != nullptr && valid[row]; }
  const T &operator[](uint64_t row) const { return values[codes[row]]; }
};

struct GivenTexts {
  const char *data = nullptr;
  const int64_t *ends = nullptr;  // null: there is no such column

  std::string_view operator[](uint64_t row) const {
    return {data + ends[row], static_cast<size_t>(ends[row + 1] - ends[row])};
  }
};

// Columns from Python, by name. They live as long as this. A column of another type, with gaps where there may be none, or with a code
// beyond its dictionary is refused: std::invalid_argument. All but `values` take gaps.
class GivenColumns {
 public:
  explicit GivenColumns(ArrowTable *table);  // null: no rows, no columns
  GivenColumns(GivenColumns &&other) noexcept : table_(std::exchange(other.table_, nullptr)) {}
  GivenColumns &operator=(GivenColumns &&) = delete;
  ~GivenColumns();

  uint64_t rows() const { return table_ == nullptr ? 0 : static_cast<uint64_t>(table_->array.length); }
  uint64_t count() const { return table_ == nullptr ? 0 : static_cast<uint64_t>(table_->array.n_children); }
  //! The name and the format of a column by its place.
  std::string_view name(uint64_t place) const { return table_->schema.children[place]->name; }
  std::string_view format(uint64_t place) const;

  // Null: there is no such column.
  template <typename T>
  const T *values(std::string_view name) const {
    const uint64_t place = place_of(name);
    return place == kNone ? nullptr
                          : static_cast<const T *>(whole(place, arrow_format<T>(), sizeof(T), true));
  }
  // As `values`. Throws where there is no such column.
  template <typename T>
  const T *required(std::string_view name) const {
    const T *column = values<T>(name);
    if (column == nullptr) {
      refuse(name, "is missing");
    }
    return column;
  }
  template <typename T>
  GivenNumbers<T> numbers(uint64_t place) const {
    return {static_cast<const T *>(whole(place, arrow_format<T>(), sizeof(T), false)), valid(place)};
  }
  template <typename T>
  GivenNumbers<T> numbers(std::string_view name) const {
    const uint64_t place = place_of(name);
    return place == kNone ? GivenNumbers<T>() : numbers<T>(place);
  }
  template <typename T>
  GivenCodes<T> codes(uint64_t place) const {
    const auto *codes = static_cast<const int32_t *>(whole(place, "i", sizeof(int32_t), false));
    uint64_t size = 0;
    const void *values = dictionary(place, arrow_format<T>(), sizeof(T), size);
    const GivenCodes<T> column{codes, static_cast<const T *>(values), size, valid(place)};
    check_codes(place, column.codes, column.valid, size);
    return column;
  }
  template <typename T>
  GivenCodes<T> codes(std::string_view name) const {
    const uint64_t place = place_of(name);
    return place == kNone ? GivenCodes<T>() : codes<T>(place);
  }
  GivenNumbers<uint8_t> bits(uint64_t place) const;  // a bit for each row, at the place of its valid bit
  GivenTexts texts(std::string_view name) const;

 private:
  static constexpr uint64_t kNone = UINT64_MAX;

  uint64_t place_of(std::string_view name) const;
  const void *whole(uint64_t place, const char *format, size_t width, bool no_gaps) const;
  const void *dictionary(uint64_t place, const char *format, size_t width, uint64_t &size) const;
  ValidRows valid(uint64_t place) const;
  void check_codes(uint64_t place, const int32_t *codes, const ValidRows &valid, uint64_t size) const;
  [[noreturn]] static void refuse(std::string_view name, const char *why);

  ArrowTable *table_;
};

namespace door {

template <>
struct Crossing<ArrowColumns> {
  using Raw = ArrowTable;
  static Raw out(ArrowColumns columns) { return columns.release(); }
  static std::string type() { return "table="; }
  static constexpr void (*free)(void *) = nullptr;
};

template <>
struct Crossing<GivenColumns> {
  using Raw = ArrowTable *;
  static GivenColumns in(Raw raw) { return GivenColumns(raw); }
  static std::string type() { return "table"; }
};

}  // namespace door
}  // namespace warplens::reader
