// Reads .eh_frame.
// Nothing in these tables is trusted: each read is bounded, each loop ends, unknown rules give no row.
#include "frame_tables.h"

#include <algorithm>

#include "cursor.h"

namespace warplens::agent {
namespace {

constexpr size_t kMostEntry = 64 << 10;  // bytes of a CIE or FDE
constexpr unsigned kMostRemembered = 16;
constexpr unsigned kMostSteps = 20'000;
constexpr size_t kMostExpressions = 4096;

// How pointers are written (DW_EH_PE_…).
constexpr uint8_t kOmit = 0xff;
constexpr uint8_t kFormat = 0x0f;
constexpr uint8_t kRelative = 0x70;
constexpr uint8_t kToHere = 0x10;
constexpr uint8_t kToTables = 0x30;
constexpr uint8_t kIndirect = 0x80;

// A CIE or an FDE, without its length.
struct Entry {
  uint64_t address = 0;  // of bytes[0]
  std::vector<uint8_t> bytes;

  Cursor cursor() const { return {bytes.data(), bytes.size()}; }
};

struct Common {
  uint64_t code_alignment = 0;
  int64_t data_alignment = 0;
  uint64_t return_column = 0;
  uint8_t encoding = 0;
  bool augmented = false;
  bool signal = false;
  Entry entry;
  size_t program = 0;  // where its instructions begin in it
};

bool read_entry(const ElfImage &image, uint64_t address, Entry *entry) {
  uint32_t length = 0;
  if (!image.read(address, &length, sizeof(length)) || length < 4 || length > kMostEntry) {
    return false;
  }
  entry->address = address + sizeof(length);
  entry->bytes.resize(length);
  return image.read(entry->address, entry->bytes.data(), length);
}

uint64_t take_pointer(Cursor &cursor, uint8_t encoding, uint64_t here, uint64_t tables) {
  uint64_t value = 0;
  switch (encoding & kFormat) {
    case 0x00:
    case 0x04:
    case 0x0c:
      value = cursor.take<uint64_t>();
      break;
    case 0x01:
      value = cursor.uleb();
      break;
    case 0x02:
      value = cursor.take<uint16_t>();
      break;
    case 0x03:
      value = cursor.take<uint32_t>();
      break;
    case 0x09:
      value = static_cast<uint64_t>(cursor.sleb());
      break;
    case 0x0a:
      value = static_cast<uint64_t>(int64_t{cursor.take<int16_t>()});
      break;
    case 0x0b:
      value = static_cast<uint64_t>(int64_t{cursor.take<int32_t>()});
      break;
    default:
      cursor.fail();
  }
  switch (encoding & kRelative) {
    case 0:
      return value;
    case kToHere:
      return value + here;
    case kToTables:
      return value + tables;
    default:
      cursor.fail();
      return 0;
  }
}

// The augmentation says how FDEs are written; letters that are not known make it unreadable.
bool parse_augmentation(Cursor &cursor, const char *letters, Common *common) {
  cursor.uleb();  // its length
  for (const char *letter = letters + 1; *letter != '\0'; ++letter) {
    if (*letter == 'R') {
      common->encoding = cursor.take<uint8_t>();
    } else if (*letter == 'L') {
      cursor.take<uint8_t>();
    } else if (*letter == 'P') {
      auto encoding = cursor.take<uint8_t>();
      take_pointer(cursor, encoding & static_cast<uint8_t>(~kRelative & ~kIndirect), 0, 0);
    } else if (*letter == 'S') {
      common->signal = true;
    } else if (*letter != 'B' && *letter != 'G') {
      return false;
    }
  }
  return (common->encoding & kIndirect) == 0 && cursor.ok();
}

bool parse_common(const ElfImage &image, uint64_t address, Common *common) {
  if (!read_entry(image, address, &common->entry)) {
    return false;
  }
  Cursor cursor = common->entry.cursor();
  bool is_common = cursor.take<uint32_t>() == 0;
  auto version = cursor.take<uint8_t>();
  char letters[16];
  size_t length = 0;
  do {
    letters[length] = static_cast<char>(cursor.take<uint8_t>());
  } while (letters[length] != '\0' && ++length < sizeof(letters));
  if (!is_common || length == sizeof(letters) || (version != 1 && version != 3 && version != 4)) {
    return false;
  }
  if (version == 4) {
    cursor.skip(2);  // sizes of addresses and of segments
  }
  common->code_alignment = cursor.uleb();
  common->data_alignment = cursor.sleb();
  common->return_column = version == 1 ? cursor.take<uint8_t>() : cursor.uleb();
  common->augmented = letters[0] == 'z';
  if (letters[0] != '\0' && !common->augmented) {
    return false;
  }
  if (common->augmented) {
    Cursor start = cursor;
    uint64_t size = start.uleb();
    Cursor inside = cursor;
    if (!parse_augmentation(inside, letters, common)) {
      return false;
    }
    start.skip(size);
    cursor = start;
  }
  common->program = static_cast<size_t>(cursor.at() - common->entry.bytes.data());
  return cursor.ok() && common->return_column < kRegisters;
}

// Carries out the instructions of a CIE and of an FDE.
class Program {
 public:
  Program(const Common &common, uint64_t begin, uint64_t tables, RowDraft *draft)
      : common_(common), location_(begin), tables_(tables), draft_(*draft) {}

  void keep_initial() { std::copy(std::begin(draft_.rules), std::end(draft_.rules), initial_); }

  // Until an instruction moves beyond `pc`. False for nonsense.
  bool run(Cursor cursor, uint64_t address, const uint8_t *bytes, uint64_t pc) {
    while (cursor.left() > 0 && cursor.ok()) {
      if (++steps_ > kMostSteps) {
        return false;
      }
      uint64_t here = address + static_cast<uint64_t>(cursor.at() - bytes) + 1;
      auto code = cursor.take<uint8_t>();
      unsigned low = code & 0x3f;
      if (code >> 6 == 1) {
        location_ += low * common_.code_alignment;
      } else if (code >> 6 == 2) {
        set(low, Rule::at_offset, scaled(cursor.uleb()));
      } else if (code >> 6 == 3) {
        restore(low);
      } else if (!extended(cursor, code, here)) {
        return false;
      }
      if (location_ > pc) {
        return cursor.ok();
      }
    }
    return cursor.ok();
  }

 private:
  int64_t scaled(uint64_t factor) const {
    return static_cast<int64_t>(factor * static_cast<uint64_t>(common_.data_alignment));
  }
  int64_t scaled(int64_t factor) const { return scaled(static_cast<uint64_t>(factor)); }

  void set(uint64_t column, Rule rule, int64_t offset) {
    if (column < kRegisters) {  // others (of vectors) nobody asks for
      draft_.rules[column] = {rule, static_cast<uint8_t>(column), 0, static_cast<int32_t>(offset)};
    }
  }

  void restore(uint64_t column) {
    if (column < kRegisters) {
      draft_.rules[column] = initial_[column];
    }
  }

  void set_cfa(uint64_t column, int64_t offset) {
    draft_.row.by_expression = false;
    draft_.row.cfa_register = static_cast<uint8_t>(std::min<uint64_t>(column, kRegisters));
    draft_.row.cfa_offset = static_cast<int32_t>(offset);
  }

  // Keeps the bytes of an expression; where they are.
  bool keep(Cursor &cursor, uint64_t *size, int32_t *offset) {
    *size = cursor.uleb();
    const uint8_t *bytes = cursor.at();
    cursor.skip(*size);
    if (!cursor.ok() || *size > kMostExpressions || draft_.expressions.size() + *size > kMostExpressions) {
      return false;
    }
    *offset = static_cast<int32_t>(draft_.expressions.size());
    draft_.expressions.insert(draft_.expressions.end(), bytes, bytes + *size);
    return true;
  }

  bool set_expression(Cursor &cursor, Rule rule) {
    uint64_t column = cursor.uleb();
    uint64_t size = 0;
    int32_t offset = 0;
    if (!keep(cursor, &size, &offset)) {
      return false;
    }
    if (column < kRegisters) {
      draft_.rules[column] = {rule, static_cast<uint8_t>(column), static_cast<uint16_t>(size), offset};
    }
    return true;
  }

  bool remember() {
    if (remembered_ == kMostRemembered) {
      return false;
    }
    auto &kept = kept_[remembered_++];
    kept.row = draft_.row;
    std::copy(std::begin(draft_.rules), std::end(draft_.rules), kept.rules);
    return true;
  }

  bool recall() {
    if (remembered_ == 0) {
      return false;
    }
    auto &kept = kept_[--remembered_];
    draft_.row = kept.row;
    std::copy(std::begin(kept.rules), std::end(kept.rules), draft_.rules);
    return true;
  }

  // DW_CFA_…
  bool extended(Cursor &cursor, uint8_t code, uint64_t here) {
    uint64_t column = 0;
    switch (code) {
      case 0x00:  // nop
        return true;
      case 0x01:  // set_loc
        location_ = take_pointer(cursor, common_.encoding, here, tables_);
        return true;
      case 0x02:
        location_ += cursor.take<uint8_t>() * common_.code_alignment;
        return true;
      case 0x03:
        location_ += cursor.take<uint16_t>() * common_.code_alignment;
        return true;
      case 0x04:
        location_ += cursor.take<uint32_t>() * common_.code_alignment;
        return true;
      case 0x05:  // offset_extended
        column = cursor.uleb();
        set(column, Rule::at_offset, scaled(cursor.uleb()));
        return true;
      case 0x06:
        restore(cursor.uleb());
        return true;
      case 0x07:
        set(cursor.uleb(), Rule::undefined, 0);
        return true;
      case 0x08:
        set(cursor.uleb(), Rule::same, 0);
        return true;
      case 0x09: {  // register
        column = cursor.uleb();
        uint64_t other = cursor.uleb();
        set(column, other < kRegisters ? Rule::in_register : Rule::undefined, static_cast<int64_t>(other));
        return true;
      }
      case 0x0a:
        return remember();
      case 0x0b:
        return recall();
      case 0x0c:  // def_cfa
        column = cursor.uleb();
        set_cfa(column, static_cast<int64_t>(cursor.uleb()));
        return true;
      case 0x0d:  // def_cfa_register
        set_cfa(cursor.uleb(), draft_.row.cfa_offset);
        return true;
      case 0x0e:  // def_cfa_offset
        draft_.row.cfa_offset = static_cast<int32_t>(cursor.uleb());
        return true;
      case 0x0f: {  // def_cfa_expression
        uint64_t size = 0;
        if (!keep(cursor, &size, &draft_.row.cfa_offset)) {
          return false;
        }
        draft_.row.by_expression = true;
        draft_.row.cfa_size = static_cast<uint32_t>(size);
        return true;
      }
      case 0x10:
        return set_expression(cursor, Rule::at_expression);
      case 0x11:  // offset_extended_sf
        column = cursor.uleb();
        set(column, Rule::at_offset, scaled(cursor.sleb()));
        return true;
      case 0x12:  // def_cfa_sf
        column = cursor.uleb();
        set_cfa(column, scaled(cursor.sleb()));
        return true;
      case 0x13:  // def_cfa_offset_sf
        draft_.row.cfa_offset = static_cast<int32_t>(scaled(cursor.sleb()));
        return true;
      case 0x14:  // val_offset
        column = cursor.uleb();
        set(column, Rule::is_offset, scaled(cursor.uleb()));
        return true;
      case 0x15:  // val_offset_sf
        column = cursor.uleb();
        set(column, Rule::is_offset, scaled(cursor.sleb()));
        return true;
      case 0x16:
        return set_expression(cursor, Rule::is_expression);
      case 0x2d:  // AARCH64_negate_ra_state: return addresses are signed from here on
        return true;
      case 0x2e:  // GNU_args_size
        cursor.uleb();
        return true;
      case 0x2f:  // GNU_negative_offset_extended
        column = cursor.uleb();
        set(column, Rule::at_offset, -scaled(cursor.uleb()));
        return true;
      default:
        return false;
    }
  }

  struct Kept {
    Row row;
    RegisterRule rules[kRegisters];
  };

  const Common &common_;
  uint64_t location_;
  const uint64_t tables_;
  RowDraft &draft_;
  RegisterRule initial_[kRegisters]{};
  Kept kept_[kMostRemembered];
  unsigned remembered_ = 0;
  unsigned steps_ = 0;
};

// The FDE that the sorted table names for `pc`; 0 = none.
uint64_t search(const ElfImage &image, uint64_t pc) {
  uint8_t head[64];
  size_t size = std::min<uint64_t>(sizeof(head), image.tables_size());
  if (size < 4 || !image.read(image.tables(), head, size) || head[0] != 1 || head[2] == kOmit ||
      head[3] != (kToTables | 0x0b)) {
    return 0;
  }
  Cursor cursor(head + 4, size - 4);
  auto here = [&] { return image.tables() + static_cast<uint64_t>(cursor.at() - head); };
  take_pointer(cursor, head[1], here(), image.tables());
  uint64_t count = take_pointer(cursor, head[2], here(), image.tables());
  uint64_t table = here();
  struct Pair {
    int32_t begin;
    int32_t entry;
  };
  if (!cursor.ok() || count == 0 || count > image.tables_size() / sizeof(Pair)) {
    return 0;
  }
  auto relative = static_cast<int64_t>(pc - image.tables());
  uint64_t low = 0;
  Pair best{};
  bool found = false;
  // Down to a piece that is read as a whole.
  constexpr uint64_t kPiece = 64;
  uint64_t high = count;
  while (high - low > kPiece) {
    uint64_t middle = low + (high - low) / 2;
    Pair pair{};
    if (!image.read(table + middle * sizeof(Pair), &pair, sizeof(pair))) {
      return 0;
    }
    (pair.begin <= relative ? low : high) = middle;
  }
  Pair piece[kPiece];
  if (!image.read(table + low * sizeof(Pair), piece, (high - low) * sizeof(Pair))) {
    return 0;
  }
  for (uint64_t i = 0; i < high - low && piece[i].begin <= relative; ++i) {
    best = piece[i];
    found = true;
  }
  return found ? image.tables() + static_cast<uint64_t>(int64_t{best.entry}) : 0;
}

// An FDE with its CIE, and what it describes.
struct Description {
  Entry entry;
  Common common;
  CodePiece piece;
  size_t program = 0;  // where its instructions begin in `entry`, after what it says of the piece
};

bool describe(const ElfImage &image, uint64_t pc, Description *of) {
  uint64_t at = image.tables() != 0 ? search(image, pc) : 0;
  if (at == 0 || !read_entry(image, at, &of->entry)) {
    return false;
  }
  Cursor cursor = of->entry.cursor();
  auto back = cursor.take<uint32_t>();
  if (back == 0 || !parse_common(image, of->entry.address - back, &of->common)) {
    return false;
  }
  auto done = [&] { return static_cast<size_t>(cursor.at() - of->entry.bytes.data()); };
  of->piece.begin = take_pointer(cursor, of->common.encoding, of->entry.address + done(), image.tables());
  of->piece.size = take_pointer(cursor, of->common.encoding & kFormat, of->entry.address + done(), 0);
  if (of->common.augmented) {
    cursor.skip(cursor.uleb());
  }
  of->program = done();
  return cursor.ok() && pc - of->piece.begin < of->piece.size;
}

}  // namespace

CodePiece find_piece(const ElfImage &image, uint64_t pc) {
  Description of;
  return describe(image, pc, &of) ? of.piece : CodePiece{};
}

bool find_row(const ElfImage &image, uint64_t pc, RowDraft *draft) {
  Description of;
  if (!describe(image, pc, &of)) {
    return false;
  }
  const auto &[entry, common, piece, program_at] = of;
  Cursor cursor = entry.cursor();
  cursor.skip(program_at);
  draft->row.cfa_register = kRegisters;
  draft->row.return_column = static_cast<uint8_t>(common.return_column);
  draft->row.signal = common.signal;
  Program program(common, piece.begin, image.tables(), draft);
  Cursor first = common.entry.cursor();
  first.skip(common.program);
  if (!program.run(first, common.entry.address, common.entry.bytes.data(), ~uint64_t{0})) {
    return false;
  }
  program.keep_initial();
  return program.run(cursor, entry.address, entry.bytes.data(), pc) &&
         (draft->row.by_expression || draft->row.cfa_register < kRegisters);
}

}  // namespace warplens::agent
