// Shapes and types of an operator's inputs, as the JSON that PyTorch's own profiler writes.
#include <charconv>

#include "ops.h"

namespace warplens::agent::torch {
namespace {

constexpr size_t kMost = 4096;  // bytes of such a text

// A text of bounded length: what does not fit makes all of it void.
class Text {
 public:
  void add(std::string_view piece) {
    fits_ = fits_ && size_ + piece.size() <= kMost;
    if (fits_) {
      std::memcpy(bytes_ + size_, piece.data(), piece.size());
      size_ += piece.size();
    }
  }
  void add(int64_t number) {
    char digits[24];
    add({digits, static_cast<size_t>(std::to_chars(digits, digits + sizeof(digits), number).ptr - digits)});
  }
  uint32_t number(ThreadLog &log) const { return fits_ ? log.intern(bytes_, size_) : 0; }

 private:
  char bytes_[kMost];
  size_t size_ = 0;
  bool fits_ = true;
};

template <typename T, typename Write>
void write_list(Text &text, const TorchVector<T> &items, const Write &write) {
  text.add("[");
  for (T *item = items.first; item != items.last; ++item) {
    if (item != items.first) {
      text.add(",");
    }
    write(*item);
  }
  text.add("]");
}

template <typename T>
void give_back(const Library &library, const TorchVector<T> &items) {
  if (items.first != nullptr) {
    library.give_back(items.first);
  }
}

uint32_t shapes_of(const Library &library, const TorchRecord &record, ThreadLog &log) {
  Text text;
  const auto sizes = library.input_sizes(record, false);
  write_list(text, sizes, [&](const TorchVector<int64_t> &one) {
    write_list(text, one, [&](int64_t size) { text.add(size); });
    give_back(library, one);
  });
  give_back(library, sizes);
  return text.number(log);
}

uint32_t types_of(const Library &library, const TorchRecord &record, ThreadLog &log) {
  Text text;
  const auto types = library.input_types(record);
  write_list(text, types, [&](const TorchString &one) {
    text.add("\"");
    text.add({one.text, one.size});
    text.add("\"");
    if (one.text != one.inside) {
      library.give_back(one.text);
    }
  });
  give_back(library, types);
  return text.number(log);
}

}  // namespace

void describe_inputs(const Library &library, const TorchRecord &record, ThreadLog &log, Label &label) {
  if (library.input_sizes != nullptr) {
    label.color = shapes_of(library, record, log);
  }
  if (library.input_types != nullptr) {
    label.category = types_of(library, record, log);
  }
}

}  // namespace warplens::agent::torch
