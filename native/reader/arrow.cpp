// Columns by Arrow's C data interface.
#include "arrow.h"

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warplens::reader {
namespace {

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE
constexpr uint64_t kNothing = 0;  // Arrow wants an address also where there are no rows

// What a column keeps until it is released. It may be moved out of its parent.
struct ColumnHold {
  std::shared_ptr<const void> owner;
  std::array<const void *, 2> buffers;
  ArrowArray dictionary;  // released with the column
  std::array<const void *, 2> dictionary_buffers;
};

struct NameHold {
  std::string name;
  ArrowSchema dictionary;
};

// What a struct array or its schema keeps.
template <typename Node>
struct ParentHold {
  std::vector<Node> nodes;
  std::vector<Node *> children;
  std::array<const void *, 1> buffers{nullptr};
};

void release_column(ArrowArray *array) {
  delete static_cast<ColumnHold *>(array->private_data);
  array->release = nullptr;
}

void release_name(ArrowSchema *schema) {
  delete static_cast<NameHold *>(schema->private_data);
  schema->release = nullptr;
}

// Of what goes with its owner.
template <typename Node>
void release_part(Node *part) {
  part->release = nullptr;
}

template <typename Node>
void release_parent(Node *parent) {
  auto *hold = static_cast<ParentHold<Node> *>(parent->private_data);
  for (Node *child : hold->children) {
    if (child->release != nullptr) {
      child->release(child);
    }
  }
  delete hold;
  parent->release = nullptr;
}

template <typename Node>
std::unique_ptr<ParentHold<Node>> room_for(size_t children) {
  auto hold = std::make_unique<ParentHold<Node>>();
  hold->nodes.resize(children);
  for (Node &node : hold->nodes) {
    hold->children.push_back(&node);
  }
  return hold;
}

}  // namespace

void ArrowColumns::add_buffer(const char *name, const char *format, const void *values, size_t size,
                              const Valid *valid) {
  if (size < rows_ || (valid != nullptr && valid->size() * 8 < rows_)) {
    throw std::invalid_argument(std::string("the column ") + name + " is shorter than its table");
  }
  columns_.push_back({name,
                      format,
                      rows_ == 0 ? &kNothing : values,
                      valid == nullptr || rows_ == 0 ? nullptr : valid->data(),
                      {}});
}

ArrowTable ArrowColumns::release() {
  auto arrays = room_for<ArrowArray>(columns_.size());
  auto schemas = room_for<ArrowSchema>(columns_.size());
  const auto count = static_cast<int64_t>(columns_.size());
  const auto rows = static_cast<int64_t>(rows_);
  std::vector<std::unique_ptr<ColumnHold>> holds;
  std::vector<std::unique_ptr<NameHold>> names;
  for (const Column &column : columns_) {
    const Dictionary &values = column.dictionary;
    holds.push_back(std::make_unique<ColumnHold>(ColumnHold{owner_, {column.valid, column.values}, {}, {}}));
    holds.back()->dictionary_buffers = {nullptr, values.size == 0 ? &kNothing : values.values};
    names.push_back(std::make_unique<NameHold>(NameHold{column.name, {}}));
  }
  for (size_t at = 0; at < columns_.size(); ++at) {  // nothing throws from here on
    const Column &column = columns_[at];
    ColumnHold *hold = holds[at].release();
    NameHold *name = names[at].release();
    const int64_t nulls = hold->buffers[0] == nullptr ? 0 : -1;
    const int64_t flags = column.valid == nullptr ? 0 : kNullable;
    arrays->nodes[at] = {rows, nulls, 0, 2, 0, hold->buffers.data(), nullptr, nullptr, release_column, hold};
    schemas->nodes[at] = {column.format, name->name.c_str(), nullptr, flags, 0, nullptr,
                          nullptr,       release_name,       name};
    if (column.dictionary.format != nullptr) {
      const auto size = static_cast<int64_t>(column.dictionary.size);
      hold->dictionary = {
          size,   0, 0, 2, 0, hold->dictionary_buffers.data(), nullptr, nullptr, release_part<ArrowArray>,
          nullptr};
      name->dictionary = {column.dictionary.format,  "",     nullptr, 0, 0, nullptr, nullptr,
                          release_part<ArrowSchema>, nullptr};
      arrays->nodes[at].dictionary = &hold->dictionary;
      schemas->nodes[at].dictionary = &name->dictionary;
    }
  }
  const ArrowTable table{{rows, 0, 0, 1, count, arrays->buffers.data(), arrays->children.data(), nullptr,
                          release_parent<ArrowArray>, arrays.get()},
                         {"+s", "", nullptr, 0, count, schemas->children.data(), nullptr,
                          release_parent<ArrowSchema>, schemas.get()}};
  arrays.release();
  schemas.release();
  return table;
}

GivenColumns::GivenColumns(ArrowTable *table) : table_(table) {
  if (table_ != nullptr && (table_->array.offset != 0 || std::string_view(table_->schema.format) != "+s" ||
                            table_->array.n_children != table_->schema.n_children)) {
    throw std::invalid_argument("a table is needed");
  }
}

GivenColumns::~GivenColumns() {
  if (table_ != nullptr) {
    table_->array.release(&table_->array);
    table_->schema.release(&table_->schema);
  }
}

void GivenColumns::refuse(std::string_view name, const char *why) {
  throw std::invalid_argument(std::string("the column ").append(name).append(" ").append(why));
}

uint64_t GivenColumns::place_of(std::string_view wanted) const {
  for (uint64_t place = 0; place < count(); ++place) {
    if (name(place) == wanted) {
      return place;
    }
  }
  return kNone;
}

std::string_view GivenColumns::format(uint64_t place) const {
  return table_->schema.children[place]->format;
}

ValidRows GivenColumns::valid(uint64_t place) const {
  const ArrowArray &column = *table_->array.children[place];
  const void *bits = column.null_count == 0 ? nullptr : column.buffers[0];
  return {static_cast<const uint8_t *>(bits), static_cast<uint64_t>(column.offset)};
}

const void *GivenColumns::whole(uint64_t place, const char *wanted, size_t width, bool no_gaps) const {
  const ArrowArray &column = *table_->array.children[place];
  if (format(place) != wanted) {
    refuse(name(place), "is of another type");
  }
  if (no_gaps) {
    const ValidRows has = valid(place);
    for (uint64_t row = 0; has.bits != nullptr && row < rows(); ++row) {
      if (!has[row]) {
        refuse(name(place), "has rows without a value");
      }
    }
  }
  if (column.buffers[1] == nullptr) {  // some give no address where there are no rows
    return &kNothing;
  }
  return static_cast<const char *>(column.buffers[1]) + static_cast<size_t>(column.offset) * width;
}

const void *GivenColumns::dictionary(uint64_t place, const char *wanted, size_t width, uint64_t &size) const {
  const ArrowArray *values = table_->array.children[place]->dictionary;
  const ArrowSchema *schema = table_->schema.children[place]->dictionary;
  if (values == nullptr || schema == nullptr || std::string_view(schema->format) != wanted) {
    refuse(name(place), "is of another type");
  }
  size = static_cast<uint64_t>(values->length);
  if (values->buffers[1] == nullptr) {
    return &kNothing;
  }
  return static_cast<const char *>(values->buffers[1]) + static_cast<size_t>(values->offset) * width;
}

void GivenColumns::check_codes(uint64_t place, const int32_t *codes, const ValidRows &has,
                               uint64_t size) const {
  const auto beyond = [&](uint64_t row) {
    return static_cast<uint32_t>(codes[row]) >= size;
  };  // negative, too
  bool wrong = false;
  if (has.bits == nullptr) {
    for (uint64_t row = 0; row < rows(); ++row) {
      wrong |= beyond(row);
    }
  } else {
    for (uint64_t row = 0; row < rows(); ++row) {
      wrong |= has[row] && beyond(row);
    }
  }
  if (wrong) {
    refuse(name(place), "has a code beyond its dictionary");
  }
}

GivenNumbers<uint8_t> GivenColumns::bits(uint64_t place) const {
  const ArrowArray &column = *table_->array.children[place];
  if (format(place) != "b") {
    refuse(name(place), "is of another type");
  }
  const void *values = column.buffers[1] == nullptr ? &kNothing : column.buffers[1];
  return {static_cast<const uint8_t *>(values), valid(place)};
}

GivenTexts GivenColumns::texts(std::string_view wanted) const {
  const uint64_t place = place_of(wanted);
  if (place == kNone) {
    return {};
  }
  const auto *ends = static_cast<const int64_t *>(whole(place, "Z", sizeof(int64_t), true));
  return {static_cast<const char *>(table_->array.children[place]->buffers[2]), ends};
}

}  // namespace warplens::reader
