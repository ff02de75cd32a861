// Evaluates DWARF expressions.
// A small stack machine with bounded steps and a bounded stack; it reads only the thread's memory.
#include "expression.h"

#include "cursor.h"

namespace warplens::agent {
namespace {

constexpr unsigned kMostSteps = 1000;

class Machine {
 public:
  Machine(const Registers &registers, const StackView &stack) : registers_(registers), stack_(stack) {}

  void push(uint64_t value) {
    if (depth_ == kMostDepth) {
      ok_ = false;
    } else {
      values_[depth_++] = value;
    }
  }

  uint64_t pop() {
    if (depth_ == 0) {
      ok_ = false;
      return 0;
    }
    return values_[--depth_];
  }

  uint64_t peek(unsigned below) {
    if (below >= depth_) {
      ok_ = false;
      return 0;
    }
    return values_[depth_ - 1 - below];
  }

  void load(uint64_t address, unsigned size) {
    uint64_t value = 0;
    if (!stack_.read(address, &value)) {
      ok_ = false;
    }
    push(size < 8 ? value & ((uint64_t{1} << (8 * size)) - 1) : value);
  }

  void push_register(uint64_t number, int64_t offset) {
    if (number >= kRegisters) {
      ok_ = false;
      return;
    }
    push(registers_.value[number] + static_cast<uint64_t>(offset));
  }

  bool ok() const { return ok_; }
  void fail() { ok_ = false; }

 private:
  static constexpr unsigned kMostDepth = 64;
  const Registers &registers_;
  const StackView &stack_;
  uint64_t values_[kMostDepth];
  unsigned depth_ = 0;
  bool ok_ = true;
};

// Those that take two values and give one. False: not one of them.
bool binary(uint8_t code, Machine &machine) {
  if ((code < 0x1a || code > 0x27 || code == 0x1f || code == 0x20 || code == 0x23) &&
      (code < 0x29 || code > 0x2e)) {
    return false;
  }
  uint64_t b = machine.pop(), a = machine.pop();
  auto signed_a = static_cast<int64_t>(a), signed_b = static_cast<int64_t>(b);
  switch (code) {
    case 0x1a:
      return machine.push(a & b), true;
    case 0x1b:
      if (b == 0 || (b == ~uint64_t{0} && a == uint64_t{1} << 63)) {
        return machine.fail(), true;
      }
      return machine.push(static_cast<uint64_t>(signed_a / signed_b)), true;
    case 0x1c:
      return machine.push(a - b), true;
    case 0x1d:
      return b == 0 ? machine.fail() : machine.push(a % b), true;
    case 0x1e:
      return machine.push(a * b), true;
    case 0x21:
      return machine.push(a | b), true;
    case 0x22:
      return machine.push(a + b), true;
    case 0x24:
      return machine.push(b < 64 ? a << b : 0), true;
    case 0x25:
      return machine.push(b < 64 ? a >> b : 0), true;
    case 0x26:
      return machine.push(static_cast<uint64_t>(signed_a >> (b < 64 ? b : 63))), true;
    case 0x27:
      return machine.push(a ^ b), true;
    case 0x29:
      return machine.push(a == b), true;
    case 0x2a:
      return machine.push(signed_a >= signed_b), true;
    case 0x2b:
      return machine.push(signed_a > signed_b), true;
    case 0x2c:
      return machine.push(signed_a <= signed_b), true;
    case 0x2d:
      return machine.push(signed_a < signed_b), true;
    default:
      return machine.push(a != b), true;
  }
}

bool constant(uint8_t code, Cursor &cursor, Machine &machine) {
  auto widen = [](auto value) { return static_cast<uint64_t>(int64_t{value}); };
  if (code >= 0x30 && code <= 0x4f) {
    return machine.push(code - 0x30u), true;
  }
  switch (code) {
    case 0x03:
    case 0x0e:
    case 0x0f:
      return machine.push(cursor.take<uint64_t>()), true;
    case 0x08:
      return machine.push(cursor.take<uint8_t>()), true;
    case 0x09:
      return machine.push(widen(cursor.take<int8_t>())), true;
    case 0x0a:
      return machine.push(cursor.take<uint16_t>()), true;
    case 0x0b:
      return machine.push(widen(cursor.take<int16_t>())), true;
    case 0x0c:
      return machine.push(cursor.take<uint32_t>()), true;
    case 0x0d:
      return machine.push(widen(cursor.take<int32_t>())), true;
    case 0x10:
      return machine.push(cursor.uleb()), true;
    case 0x11:
      return machine.push(static_cast<uint64_t>(cursor.sleb())), true;
    default:
      return false;
  }
}

// Those that move values about, or take one. False: not one of them.
bool unary(uint8_t code, Cursor &cursor, Machine &machine) {
  uint64_t a = 0, b = 0, c = 0;
  switch (code) {
    case 0x06:
      return machine.load(machine.pop(), 8), true;
    case 0x12:
      return machine.push(machine.peek(0)), true;
    case 0x13:
      return machine.pop(), true;
    case 0x14:
      return machine.push(machine.peek(1)), true;
    case 0x15:
      return machine.push(machine.peek(cursor.take<uint8_t>())), true;
    case 0x16:
      a = machine.pop(), b = machine.pop();
      return machine.push(a), machine.push(b), true;
    case 0x17:
      a = machine.pop(), b = machine.pop(), c = machine.pop();
      return machine.push(a), machine.push(c), machine.push(b), true;
    case 0x19:
      a = machine.pop();
      return machine.push(static_cast<int64_t>(a) < 0 ? 0 - a : a), true;
    case 0x1f:
      return machine.push(0 - machine.pop()), true;
    case 0x20:
      return machine.push(~machine.pop()), true;
    case 0x23:
      return machine.push(machine.pop() + cursor.uleb()), true;
    case 0x94:
      a = cursor.take<uint8_t>();
      return a == 0 || a > 8 ? machine.fail() : machine.load(machine.pop(), static_cast<unsigned>(a)), true;
    case 0x96:
      return true;
    default:
      return false;
  }
}

}  // namespace

bool evaluate(const uint8_t *bytes, size_t size, const Registers &registers, const StackView &stack,
              const uint64_t *first, uint64_t *result) {
  Machine machine(registers, stack);
  if (first != nullptr) {
    machine.push(*first);
  }
  Cursor cursor(bytes, size);
  for (unsigned steps = 0; cursor.left() > 0; ++steps) {
    if (steps == kMostSteps || !machine.ok() || !cursor.ok()) {
      return false;
    }
    auto code = cursor.take<uint8_t>();
    if (code == 0x2f || code == 0x28) {  // skip, bra
      auto far = cursor.take<int16_t>();
      if (code == 0x28 && machine.pop() == 0) {
        continue;
      }
      int64_t to = static_cast<int64_t>(cursor.at() - bytes) + far;
      if (to < 0 || to > static_cast<int64_t>(size)) {
        return false;
      }
      cursor = Cursor(bytes + to, size - static_cast<size_t>(to));
    } else if (code >= 0x70 && code <= 0x8f) {  // breg
      machine.push_register(code - 0x70u, cursor.sleb());
    } else if (code == 0x92) {
      uint64_t number = cursor.uleb();
      machine.push_register(number, cursor.sleb());
    } else if (!constant(code, cursor, machine) && !binary(code, machine) && !unary(code, cursor, machine)) {
      return false;
    }
  }
  *result = machine.pop();
  return machine.ok() && cursor.ok();
}

}  // namespace warplens::agent
