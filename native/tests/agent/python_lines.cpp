// Reads line tables as the agent does: "version first_line bytes_of_code table_in_hex" a line; prints the line of each instruction.
#include <cstdio>
#include <iostream>
#include <string>

#include "agent/python/memory/lines.h"

int main() {
  uint32_t version = 0;
  int first_line = 0;
  int64_t size = 0;
  std::string hex;
  while (std::cin >> version >> first_line >> size >> hex) {
    std::string table;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
      table.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
    }
    auto ranges = warplens::agent::decode_lines(
        version, first_line, reinterpret_cast<const uint8_t *>(table.data()), table.size());
    for (int64_t offset = 0; offset < size; offset += 2) {
      std::printf("%u ", warplens::agent::line_at(ranges, offset, static_cast<uint32_t>(first_line)));
    }
    std::printf("\n");
  }
}
