// Reads .eh_frame by way of .eh_frame_hdr: the row of the table for one address.
#pragma once

#include <vector>

#include "elf_image.h"
#include "row.h"

namespace warplens::agent {

// A row that is being made.
struct RowDraft {
  Row row{};
  RegisterRule rules[kRegisters]{};  // by column
  std::vector<uint8_t> expressions;
};

struct CodePiece {
  uint64_t begin = 0;
  uint64_t size = 0;
};

//! What `image` says for the code at `pc` (as its program headers name it); false where it says nothing, or nonsense.
bool find_row(const ElfImage &image, uint64_t pc, RowDraft *draft);

//! The piece of code around `pc` that the table describes in one: a function, or what the compiler moved out of one. Its size is 0 where
//! the table says nothing.
CodePiece find_piece(const ElfImage &image, uint64_t pc);

}  // namespace warplens::agent
