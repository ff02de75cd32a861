// The parts of what Python itself does: each is put into every interpreter by the same thread, once.
#pragma once

#include <string_view>

#include "agent/hooks/cpu.h"
#include "agent/python/capi.h"
#include "agent/source.h"

namespace warpline::agent::python {

// An interpreter that we are in; never freed.
struct Interpreter {
  void *state;      // PyInterpreterState *
  uint32_t number;  // 0 = the main one
};

//! Each is called with the GIL of the interpreter, and no exception set. False where it cannot be, with a notice.
bool install_gil(Interpreter &interpreter);
bool install_gc(Interpreter &interpreter);

void begin_gil(WarplineTap &tap, uint32_t threshold_ns);
void begin_gil_child();
void end_gil();
void end_gc();

//! [MT] How often windows were opened and closed: odd while one is open.
uint32_t gate_now();
//! [MT] Whether one was open at `then`, at `now`, or between.
inline bool was_open(uint32_t then, uint32_t now) {
  return then % 2 != 0 || now != then;
}

//! [MT] The system's number of the calling thread.
uint32_t thread_number();

//! [MT] Writes a span. `name`: a text's number.
struct Span {
  SpanKind kind;
  uint32_t name = 0;
  uint64_t start = 0;
  uint64_t end = 0;
  int64_t value = 0;
  int64_t value2 = 0;
  uint32_t tid = 0;  // 0: the calling thread
  uint32_t file = 0;
  uint32_t line = 0;
  uint32_t color = 0;
  uint8_t flags = 0;
};
void write_span(const Span &span);

//! [MT] Now, on the spool's clock.
uint64_t now();

//! The text of a str; empty where it has none. Valid as long as the object.
std::string_view text_of(Object *object);

//! A notice that hooks could not be put in: `what` failed, and why: the exception that is set, which is cleared.
void tell_failure(std::string_view what);

}  // namespace warpline::agent::python
