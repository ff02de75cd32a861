// Exports columns by Arrow's C data interface.
// Columns have names and types, so a reader cannot mistake one for another. The structures are
// those of https://arrow.apache.org/docs/format/CDataInterface.html.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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

namespace warplens::desk {

// Columns of one length, as a struct array. Their memory is not copied: it is the owner's, who lives until the last column is released.
class ArrowColumns {
 public:
  ArrowColumns(std::shared_ptr<const void> owner, size_t rows) : owner_(std::move(owner)), rows_(rows) {}

  // A column of numbers; `valid` has a bit for each row, null: all rows have a value.
  template <typename T>
  void add(const char *name, const std::vector<T> &values, const std::vector<uint8_t> *valid = nullptr) {
    add_buffer(name, format_of<T>(), values.data(), values.size(), valid);
  }
  // A column of bools, a bit each.
  void add_bits(const char *name, const std::vector<uint8_t> &bits) {
    add_buffer(name, "b", bits.data(), bits.size() * 8, nullptr);
  }

  //! Hands the columns over to the caller. Once.
  void move_to(ArrowSchema *schema, ArrowArray *array);

 private:
  struct Column {
    const char *name;
    const char *format;
    const void *values;
    const void *valid;
  };

  template <typename T>
  static const char *format_of() {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (std::is_floating_point_v<T>) {
      static_assert(sizeof(T) == 8);
      return "g";
    } else if constexpr (sizeof(T) == 8) {
      return is_signed ? "l" : "L";
    } else if constexpr (sizeof(T) == 4) {
      return is_signed ? "i" : "I";
    } else {
      static_assert(sizeof(T) == 1);
      return is_signed ? "c" : "C";
    }
  }
  void add_buffer(const char *name, const char *format, const void *values, size_t size,
                  const std::vector<uint8_t> *valid);

  std::shared_ptr<const void> owner_;
  size_t rows_;
  std::vector<Column> columns_;
};

}  // namespace warplens::desk
