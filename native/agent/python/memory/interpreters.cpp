// Walks the interpreters of a CPython.
#include "interpreters.h"

#include "memory.h"

namespace warplens::agent {
namespace {

bool read_one(const PythonRuntime &python, uintptr_t address, PythonInterpreter &interpreter,
              uintptr_t &next) {
  const PythonLayout &at = python.at;
  interpreter = {};
  interpreter.address = address;
  uintptr_t gil = 0;
  bool pointed = at.interpreter_gil != kNoOffset;
  Piece pieces[] = {{&interpreter.id, address + at.interpreter_id, 8},
                    {&interpreter.threads, address + at.interpreter_threads, 8},
                    {&next, address + at.interpreter_next, 8},
                    {&gil, address + (pointed ? at.interpreter_gil : 0), 8}};
  if (copy_pieces(pieces, 4) != 4) {
    return false;
  }
  interpreter.gil = pointed ? gil : python.address + at.runtime_gil;
  if (interpreter.gil != 0) {
    interpreter.cond = interpreter.gil + at.gil_cond;
    interpreter.switch_on = interpreter.gil + at.gil_switch_cond;
  }
  return true;
}

}  // namespace

bool is_python_running(const PythonRuntime &python) {
  int initialized = 0;
  uintptr_t finalizing = 0;
  return python.is_known && copy_memory(finalizing, python.address + python.at.runtime_finalizing) &&
         copy_memory(initialized, python.address + python.at.runtime_initialized) && initialized == 1 &&
         finalizing == 0;
}

uint32_t python_interpreters(const PythonRuntime &python, PythonInterpreter *interpreters, uint32_t most) {
  uintptr_t next = 0;
  uint32_t count = 0;
  if (!copy_memory(next, python.address + python.at.runtime_interpreters)) {
    return 0;
  }
  while (next != 0 && count < most && read_one(python, next, interpreters[count], next)) {
    ++count;
  }
  return count;
}

}  // namespace warplens::agent
