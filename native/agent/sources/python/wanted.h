// Reads the list of functions to trace, as the launcher wrote it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace warplens::agent::python {

struct Wanted {
  std::string module;
  std::string name;  // dotted
  std::string shown;
  uint32_t color = 0;
  bool has_color = false;
  std::atomic<bool> found{false};
  Wanted *next = nullptr;
};

//! All of them; read from the spool directory by the first call, before main.
Wanted *wanted_functions();

//! Calls `each` for those of one module.
template <typename Each>
void for_each_wanted(std::string_view module, const Each &each) {
  for (Wanted *wanted = wanted_functions(); wanted != nullptr; wanted = wanted->next) {
    if (wanted->module == module) {
      each(*wanted);
    }
  }
}

}  // namespace warplens::agent::python
