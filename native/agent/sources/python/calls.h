// Tracks the traced calls of each thread.
// It keeps facts about each function's code, and the running calls of each thread.
#pragma once

#include <atomic>
#include <string>

#include "parts.h"
#include "threads.h"

namespace warplens::agent::python {

// Beside a code object; gone when it is.
struct CodeFacts {
  uint32_t name;
  uint32_t file;
  uint32_t line;
  uint32_t color;
  uint8_t flags;
};

//! What is known of it; null where we have not met it.
CodeFacts *known_code(const Interpreter &interpreter, Object *code);

//! Makes it known, under that name, or its own where that is empty; null when memory is out.
CodeFacts *meet_code(Interpreter &interpreter, Object *code, std::string_view name = {});

void enter_call(Thread &thread, const CodeFacts &code);
void leave_call(Thread &thread, const CodeFacts &code, bool failed);

//! With sys.monitoring (3.12 and later): reports calls of the functions chosen by listen_to_code, or of all. False if
//! that is impossible: then the source reports the reason.
bool listen_to_calls(Interpreter &interpreter);
bool listen_to_code(Interpreter &interpreter, Object *code);
bool listen_to_all(Interpreter &interpreter);
bool listen_to_raised(Interpreter &interpreter, MethodDef &callback);

//! Whether the interpreter has it.
inline bool has_monitoring() {
  return g_python.version >= 0x030c;
}

}  // namespace warplens::agent::python
