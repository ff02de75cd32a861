// The table of the library's functions.
#include "door.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

namespace warplens::reader {
namespace {

std::vector<Function> &table() {
  static std::vector<Function> functions;
  return functions;
}

void note(Failure &failure, Failure::Kind kind, const char *text) {
  failure.kind = kind;
  const size_t size = std::min(std::strlen(text), sizeof(failure.text) - 1);
  std::memcpy(failure.text, text, size);
  failure.text[size] = '\0';
}

}  // namespace

void add_function(const Function &function) {
  table().push_back(function);
}

void note_failure(Failure &failure) noexcept {
  try {
    throw;
  } catch (const std::invalid_argument &error) {
    note(failure, Failure::wrong_argument, error.what());
  } catch (...) {
    note(failure, Failure::no_memory, "");
  }
}

}  // namespace warplens::reader

// Raised when the meaning of a function or of the table changes; the types of functions are in the table.
WARPLENS_API uint32_t warplens_reader_abi_version() {
  return 8;
}

//! All functions, in no order; `count` becomes how many there are.
WARPLENS_API const warplens::reader::Function *warplens_reader_functions(uint64_t *count) {
  *count = warplens::reader::table().size();
  return warplens::reader::table().data();
}
