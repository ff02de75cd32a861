// Reads the list of functions to trace.
// One function a line in kFunctionsFile: module, colour (ARGB in hex, or empty) and name, with tabs.
#include "wanted.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "warplens/format.h"

namespace warplens::agent::python {
namespace {

std::string contents(const std::string &path) {
  std::string all;
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  char part[4096];
  for (ssize_t got = 0; file >= 0 && (got = read(file, part, sizeof(part))) > 0;) {
    all.append(part, static_cast<size_t>(got));
  }
  if (file >= 0) {
    close(file);
  }
  return all;
}

Wanted *read_line(std::string_view line, Wanted *next) {
  size_t first = line.find('\t');
  size_t second = first == std::string_view::npos ? first : line.find('\t', first + 1);
  if (second == std::string_view::npos) {
    return next;
  }
  auto *wanted = new Wanted;
  wanted->module = line.substr(0, first);
  std::string color(line.substr(first + 1, second - first - 1));
  wanted->name = line.substr(second + 1);
  wanted->shown = wanted->module == "__main__" ? wanted->name : wanted->module + "." + wanted->name;
  wanted->has_color = !color.empty();
  wanted->color = static_cast<uint32_t>(std::strtoul(color.c_str(), nullptr, 16));
  wanted->next = next;
  return wanted;
}

Wanted *read_all() {
  const char *spool = secure_getenv("WARPLENS_SPOOL");
  if (spool == nullptr) {
    return nullptr;
  }
  std::string text = contents(std::string(spool) + "/" + kFunctionsFile);
  Wanted *all = nullptr;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find('\n', at), text.size());
    all = read_line(std::string_view(text).substr(at, end - at), all);
    at = end + 1;
  }
  return all;
}

}  // namespace

Wanted *wanted_functions() {
  static Wanted *all = read_all();
  return all;
}

}  // namespace warplens::agent::python
