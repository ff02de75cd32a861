// One row of an unwind table: where the caller's registers are, for one address.
#pragma once

#include <cstdint>

#include "registers.h"

namespace warplens::agent {

enum class Rule : uint8_t {
  same,           // the caller's is the callee's
  undefined,      // lost; of the return address: there is no caller
  at_offset,      // lies at CFA + offset
  is_offset,      // is CFA + offset
  in_register,    // is in register `offset`
  at_expression,  // lies where the expression says
  is_expression   // is what the expression says
};

struct RegisterRule {
  Rule rule = Rule::same;
  uint8_t column = 0;  // of which register
  uint16_t size = 0;   // of the expression
  int32_t offset = 0;  // or where the expression begins, in bytes behind the rules
};

// In memory followed by `count` rules, and then by the bytes of their expressions.
struct Row {
  uint8_t count;
  bool signal;  // a signal handler's trampoline: the caller's address is where it was, not behind a call
  bool by_expression;  // the CFA
  uint8_t cfa_register;
  uint8_t return_column;
  uint8_t reserved[3];
  int32_t cfa_offset;  // or where its expression begins
  uint32_t cfa_size;   // of its expression

  const RegisterRule *rules() const { return reinterpret_cast<const RegisterRule *>(this + 1); }
  const uint8_t *expressions() const { return reinterpret_cast<const uint8_t *>(rules() + count); }
};
static_assert(sizeof(Row) == 16 && sizeof(RegisterRule) == 8);

}  // namespace warplens::agent
