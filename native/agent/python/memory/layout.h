// The memory layout of the CPython in this process: offsets by version, never its headers.
#pragma once

#include <cstdint>

namespace warplens::agent {

inline constexpr uint32_t kNoOffset = 0xffffffff;  // that version has no such field

// Offsets in bytes, each 4 bytes. Of 3.10 to 3.12 from the tables; from 3.13 on the interpreter publishes most of them itself.
struct PythonLayout {
  uint32_t version = 0;  // 0x030b: 3.11
  uint32_t runtime_initialized = kNoOffset;
  uint32_t runtime_finalizing = kNoOffset;    // pointer: set when the interpreter goes down
  uint32_t runtime_interpreters = kNoOffset;  // pointer to the first
  uint32_t runtime_main = kNoOffset;
  uint32_t runtime_stop = kNoOffset;     // free-threaded: the same for all interpreters
  uint32_t runtime_gil = kNoOffset;      // 3.10, 3.11: the lock itself
  uint32_t interpreter_gil = kNoOffset;  // later: pointer to it
  uint32_t interpreter_id = kNoOffset;   // int64
  uint32_t interpreter_next = kNoOffset;
  uint32_t interpreter_threads = kNoOffset;  // pointer to the first thread state
  uint32_t interpreter_stop = kNoOffset;  // free-threaded: address that a thread waits on to stop all others
  uint32_t thread_next = kNoOffset;
  uint32_t thread_interpreter = kNoOffset;
  uint32_t thread_exceptions = kNoOffset;  // pointer to the exception that is handled innermost
  uint32_t thread_handle = kNoOffset;      // pthread_t
  uint32_t thread_native = kNoOffset;      // its system id; not in 3.10
  uint32_t thread_state = kNoOffset;       // free-threaded: int, whether it may run
  uint32_t thread_chunk = kNoOffset;       // 3.11+: where its frames lie
  uint32_t thread_top = kNoOffset;
  uint32_t thread_frame = kNoOffset;   // pointer to the innermost frame; 3.11, 3.12: through cframe
  uint32_t thread_cframe = kNoOffset;  // pointer
  uint32_t cframe_frame = kNoOffset;
  uint32_t chunk_previous = kNoOffset;
  uint32_t chunk_size = kNoOffset;
  uint32_t frame_code = kNoOffset;         // 3.14: tagged
  uint32_t frame_instruction = kNoOffset;  // pointer into the code; 3.10: int, its number
  uint32_t frame_previous = kNoOffset;
  uint32_t frame_owner = kNoOffset;  // uint8
  uint32_t frame_entry = kNoOffset;  // 3.11: bool, the evaluation began with it
  uint32_t frame_locals = kNoOffset;
  uint32_t frame_copy = kNoOffset;  // free-threaded: int, the number of the copy of its code that it runs
  uint32_t frame_globals = kNoOffset;
  uint32_t frame_depth = kNoOffset;  // 3.11 to 3.13: int, how many locals and values of the stack it has
  uint32_t frame_top = kNoOffset;    // later: pointer behind the topmost value
  uint32_t generator_frame = kNoOffset;
  uint32_t generator_state = kNoOffset;  // int8, whether it runs, has ended, …
  uint32_t gil_locked = kNoOffset;       // int
  uint32_t gil_holder = kNoOffset;       // pointer to a thread state
  uint32_t gil_cond = kNoOffset;
  uint32_t gil_switch_cond = kNoOffset;
  uint32_t code_name = kNoOffset;
  uint32_t code_qualified_name = kNoOffset;
  uint32_t code_file = kNoOffset;
  uint32_t code_first_line = kNoOffset;  // int
  uint32_t code_lines = kNoOffset;
  uint32_t code_instructions = kNoOffset;
  uint32_t code_bytes = kNoOffset;
  uint32_t code_copies = kNoOffset;  // free-threaded: pointer to how many copies there are, and to each
  uint32_t object_type = kNoOffset;
  uint32_t bytes_size = kNoOffset;
  uint32_t bytes_data = kNoOffset;
  uint32_t text_length = kNoOffset;
  uint32_t text_state = kNoOffset;
  uint32_t text_kind = kNoOffset;     // not an offset: the bit of the state where the kind begins
  uint32_t text_ascii = kNoOffset;    // where an ASCII text begins
  uint32_t text_compact = kNoOffset;  // where any other begins
};

// The CPython of this process.
struct PythonRuntime {
  uintptr_t address;                                      // of _PyRuntime
  uintptr_t code_type;                                    // of PyCode_Type
  uintptr_t text_type;                                    // of PyUnicode_Type
  uintptr_t bytes_type;                                   // of PyBytes_Type
  uintptr_t none;                                         // None; 0: not known
  uintptr_t coroutine_type, generator_type, stream_type;  // of PyCoro_Type, PyGen_Type, PyAsyncGen_Type
  uintptr_t set_type, number_type, tuple_type, cell_type, function_type;
  bool free_threaded;
  bool is_known;     // its layout is; false: nothing else may be read
  PythonLayout at;   // offsets
  char version[16];  // "3.11.7", free-threaded "3.14.2t"
};

//! [MT] The CPython of this process, whether or not it is initialized; null: there is none so far. Takes the loader's lock, but where
//! one was found before. Always the same one.
const PythonRuntime *find_python();

//! [MT] What find_python() has found so far, or null. Takes no lock.
const PythonRuntime *known_python();

//! [FORK] In a child: another thread may have been looking.
void renew_python();

}  // namespace warplens::agent
