// Walks a stack, one step per frame.
// The row for a frame's address gives the caller's registers.
#include "unwinder.h"

#include <new>

#include "expression.h"

namespace warplens::agent {
namespace {

alignas(RowCache) char g_storage[sizeof(RowCache)];
RowCache *g_rows = new (g_storage) RowCache;

enum class Step : uint8_t { caller, outermost, lost };

bool find_cfa(const Row &row, const StackView &stack, const Registers &registers, uint64_t *cfa) {
  if (!row.by_expression) {
    *cfa = registers.value[row.cfa_register] + static_cast<uint64_t>(int64_t{row.cfa_offset});
    return true;
  }
  return evaluate(row.expressions() + row.cfa_offset, row.cfa_size, registers, stack, nullptr, cfa);
}

bool apply(const Row &row, const RegisterRule &rule, const StackView &stack, const Registers &registers,
           uint64_t cfa, uint64_t *value) {
  uint64_t place = cfa + static_cast<uint64_t>(int64_t{rule.offset});
  switch (rule.rule) {
    case Rule::at_offset:
      return stack.read(place, value);
    case Rule::is_offset:
      *value = place;
      return true;
    case Rule::in_register:
      *value = registers.value[rule.offset];
      return true;
    case Rule::at_expression:
      return evaluate(row.expressions() + rule.offset, rule.size, registers, stack, &cfa, &place) &&
             stack.read(place, value);
    case Rule::is_expression:
      return evaluate(row.expressions() + rule.offset, rule.size, registers, stack, &cfa, value);
    default:
      return true;
  }
}

#if defined(__aarch64__)
// Return addresses may be signed in their upper bits.
uint64_t plain(uint64_t address) {
  return address & ((uint64_t{1} << 48) - 1);
}
#else
uint64_t plain(uint64_t address) {
  return address;
}
#endif

bool cfa_must_rise(const Registers &, const Row &row) {
  return !row.signal && kReturn == kProgramCounter;
}

Step step_by_row(const Row &row, const StackView &stack, Registers *registers) {
  const Registers before = *registers;
  uint64_t cfa = 0;
  // A function that calls none may have no frame where calls keep their return in a register.
  bool moves = cfa_must_rise(before, row);
  if (!find_cfa(row, stack, before, &cfa) || (moves && cfa <= before.sp())) {
    return Step::lost;
  }
  bool has_return = false;
  registers->value[kStackPointer] = cfa;
  const RegisterRule *rules = row.rules();
  for (unsigned i = 0; i < row.count; ++i) {
    if (rules[i].rule == Rule::undefined) {
      if (rules[i].column == row.return_column) {
        return Step::outermost;
      }
      continue;
    }
    has_return |= rules[i].column == row.return_column;
    if (!apply(row, rules[i], stack, before, cfa, &registers->value[rules[i].column])) {
      if (rules[i].column == row.return_column || rules[i].column == kFramePointer) {
        return Step::lost;
      }
      registers->value[rules[i].column] = 0;
    }
  }
  if (!has_return && kReturn == kProgramCounter) {
    return Step::lost;
  }
  registers->value[kProgramCounter] = plain(registers->value[row.return_column]);
  return registers->pc() == 0 ? Step::outermost : Step::caller;
}

Step step_by_frame_pointer(const StackView &stack, Registers *registers) {
  uint64_t fp = registers->value[kFramePointer];
  uint64_t caller = 0, back = 0;
  if (fp == 0) {
    return Step::outermost;
  }
  if (fp % 8 != 0 || fp < registers->sp() || !stack.read(fp, &caller) || !stack.read(fp + 8, &back)) {
    return Step::lost;
  }
  registers->value[kFramePointer] = caller;
  registers->value[kStackPointer] = fp + 16;
  registers->value[kProgramCounter] = plain(back);
  return back == 0 ? Step::outermost : Step::caller;
}

}  // namespace

RowCache &row_cache() {
  return *g_rows;
}

void renew_rows() {
  g_rows = new (g_storage) RowCache;
}

size_t unwind(const MappingView &mappings, RowCache &rows, const StackView &stack, Registers registers,
              NativeFrame *frames, size_t most, Reached *reached) {
  bool is_return = false;
  *reached = Reached::depth;
  for (size_t count = 0; count < most;) {
    // A call may be a function's last instruction: what belongs to it is the byte before its return address.
    uint64_t at = registers.pc() - (is_return ? 1 : 0);
    const Mapping *mapping = mappings.find(at);
    if (mapping == nullptr && is_return) {
      *reached = Reached::lost;  // no code is there: the way was lost before
      return count;
    }
    frames[count++] = {registers.pc(), mapping, registers.sp(), is_return};
    const ElfImage *image = mapping != nullptr ? mapping->module->image() : nullptr;
    const Row *row =
        image != nullptr ? rows.find(mapping->module->number, *image, at - mapping->bias) : nullptr;
    Step step = Step::lost;
    if (row != nullptr) {
      step = step_by_row(*row, stack, &registers);
    } else if (mapping != nullptr) {
      step = step_by_frame_pointer(stack, &registers);
    } else {  // a call of a null pointer, or of code that has gone: who called is on top of the stack
      step = stack.read(registers.sp(), &registers.value[kProgramCounter]) ? Step::caller : Step::lost;
      registers.value[kStackPointer] += 8;
    }
    if (step != Step::caller) {
      *reached = step == Step::outermost ? Reached::end : Reached::lost;
      return count;
    }
    is_return = row == nullptr || !row->signal;
  }
  return most;
}

}  // namespace warplens::agent
