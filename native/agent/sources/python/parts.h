// The parts of the Python source.
// One thread installs each part once in every interpreter.
#pragma once

#include <atomic>
#include <string_view>

#include "agent/hooks/cpu.h"
#include "agent/python/hooks/capi.h"
#include "agent/source.h"

namespace warplens::agent::python {

struct Thread;

// An interpreter that we are in; never freed.
struct Interpreter {
  void *state;                                  // PyInterpreterState *
  uint32_t number;                              // 0 = the main one
  std::atomic<Object *> wrapper_type{nullptr};  // of ours
  std::atomic<Object *> proxy_type{nullptr};
  std::atomic<Size> code_extra{-1};  // what we keep beside each code object
  Object *find_and_load = nullptr;   // of importlib, as it was
  Object *monitoring = nullptr;      // sys.monitoring, where we use it
  int64_t tool = -1;                 // our number there
};

//! The type of ours that `type` holds; made by `make` where there is none so far, by several threads at once if need be.
Object *own_type(std::atomic<Object *> &type, Object *(*make)());

//! Each is called with the GIL of the interpreter, and no exception set. False where it cannot be, with a notice.
bool install_gil(Interpreter &interpreter);
bool install_parks(Interpreter &interpreter);
bool install_gc(Interpreter &interpreter);
bool install_imports(Interpreter &interpreter);
bool install_functions(Interpreter &interpreter);
bool install_calls(Interpreter &interpreter);
bool install_events(Interpreter &interpreter);
bool install_opcodes(Interpreter &interpreter);

void begin_gil(WarplensTap &tap, uint32_t threshold_ns);
void begin_parks(WarplensTap &tap, uint32_t threshold_ns);
void begin_gil_child();
void leave_gil(Thread &thread);  // it ends
void end_gil();
void begin_calls_child();
void end_functions();
void end_calls();
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

//! A module has been imported for the first time, or was there before us: each looks whether it is one that it waits for. No exception is
//! set, before and after.
void functions_in(Interpreter &interpreter, std::string_view module_name, Object *module);
void calls_in(Interpreter &interpreter, std::string_view module_name, Object *module);
void events_in(Interpreter &interpreter, std::string_view module_name, Object *module);

//! The body of a module begins: its code.
void functions_of_code(Interpreter &interpreter, Object *code);

//! [MT] Now, on the spool's clock.
uint64_t now();

//! The text of a str; empty where it has none. Valid as long as the object.
std::string_view text_of(Object *object);

//! The text of an attribute that is a str; 0 where there is none. Keeps the exception that is set.
uint32_t text_attribute(Object *object, const char *name);

//! A notice that hooks could not be put in: `what` failed, and why: the exception that is set, which is cleared.
void tell_failure(std::string_view what);

}  // namespace warplens::agent::python
