// Columns by Arrow's C data interface.
#include "arrow.h"

#include <array>
#include <memory>
#include <stdexcept>
#include <string>

namespace warplens::desk {
namespace {

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE
constexpr uint64_t kNothing = 0;  // Arrow wants an address also where there are no rows

// What a column keeps until it is released. It may be moved out of its parent.
struct ColumnHold {
  std::shared_ptr<const void> owner;
  std::array<const void *, 2> buffers;
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
  delete static_cast<std::string *>(schema->private_data);
  schema->release = nullptr;
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
                              const std::vector<uint8_t> *valid) {
  if (size < rows_ || (valid != nullptr && valid->size() * 8 < rows_)) {
    throw std::invalid_argument(std::string("the column ") + name + " is shorter than its table");
  }
  columns_.push_back({name, format, rows_ == 0 ? &kNothing : values,
                      valid == nullptr || rows_ == 0 ? nullptr : valid->data()});
}

void ArrowColumns::move_to(ArrowSchema *schema, ArrowArray *array) {
  auto arrays = room_for<ArrowArray>(columns_.size());
  auto schemas = room_for<ArrowSchema>(columns_.size());
  const auto count = static_cast<int64_t>(columns_.size());
  const auto rows = static_cast<int64_t>(rows_);
  std::vector<std::unique_ptr<ColumnHold>> holds;
  std::vector<std::unique_ptr<std::string>> names;
  for (const Column &column : columns_) {
    holds.push_back(std::make_unique<ColumnHold>(ColumnHold{owner_, {column.valid, column.values}}));
    names.push_back(std::make_unique<std::string>(column.name));
  }
  for (size_t at = 0; at < columns_.size(); ++at) {  // nothing throws from here on
    ColumnHold *hold = holds[at].release();
    const int64_t nulls = hold->buffers[0] == nullptr ? 0 : -1;
    arrays->nodes[at] = {rows, nulls, 0, 2, 0, hold->buffers.data(), nullptr, nullptr, release_column, hold};
    std::string *name = names[at].release();
    const int64_t flags = columns_[at].valid == nullptr ? 0 : kNullable;
    schemas->nodes[at] = {columns_[at].format, name->c_str(), nullptr, flags, 0, nullptr, nullptr,
                          release_name,        name};
  }
  *array = {rows,
            0,
            0,
            1,
            count,
            arrays->buffers.data(),
            arrays->children.data(),
            nullptr,
            release_parent<ArrowArray>,
            arrays.get()};
  *schema = {
      "+s",         "", nullptr, 0, count, schemas->children.data(), nullptr, release_parent<ArrowSchema>,
      schemas.get()};
  arrays.release();
  schemas.release();
}

}  // namespace warplens::desk
