// Finds the CPython of this process, and how it lays out its memory.
#include "layout.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace warplens::agent {
namespace {

constexpr PythonLayout kTables[] = {
#include "layout_tables.inc"
};

// The beginning of _PyRuntime from 3.13 on, as CPython publishes it for debuggers. Words that are not here in 3.13 were put in between in
// 3.14: hence two.
struct Offsets {
  char cookie[8];
  uint64_t version;
  uint64_t free_threaded;
  struct {
    uint64_t size, finalizing, interpreters_head;
  } runtime;
};
struct Interpreter313 {
  uint64_t size, id, next, threads_head, gc, modules, sys, builtins, gil, own_gil, gil_enabled, gil_locked,
      gil_holder;
};
struct Interpreter314 {
  uint64_t size, id, next, threads_head, threads_main, gc, modules, sys, builtins, gil, own_gil, gil_enabled,
      gil_locked, gil_holder, code_generation, tlbc_generation;
};
struct Thread313 {
  uint64_t size, previous, next, interpreter, frame, handle, native, chunk, status;
};
struct Frame313 {
  uint64_t size, previous, code, instruction, locals, owner;
};
struct Frame314 {
  uint64_t size, previous, code, instruction, locals, owner, stack, tlbc;
};
struct Code313 {
  uint64_t size, file, name, qualified_name, lines, first_line, argument_count, local_names, local_kinds,
      instructions;
};
struct Code314 {
  uint64_t size, file, name, qualified_name, lines, first_line, argument_count, local_names, local_kinds,
      instructions, tlbc;
};
struct Objects {
  struct {
    uint64_t size, type;
  } object;
  uint64_t type[4], tuple[3], list[3], dict[3], floating[2], integer[3];
  struct {
    uint64_t size, length, data;
  } bytes;
  struct {
    uint64_t size, state, length, ascii_size;
  } text;
};

template <typename Interpreter, typename Frame, typename Code>
bool take_published(const char *from, PythonLayout &at) {
  Offsets head;
  struct {
    Interpreter interpreter;
    Thread313 thread;
    Frame frame;
    Code code;
    Objects objects;
  } its;
  std::memcpy(&head, from, sizeof(head));
  std::memcpy(&its, from + sizeof(head), sizeof(its));
  const auto &[interpreter, thread, frame, code, objects] = its;
  // What is published for another layout than ours does not hang together.
  uint64_t runtime = head.runtime.size;
  if (head.runtime.interpreters_head >= runtime || interpreter.threads_head >= interpreter.size ||
      interpreter.gil >= interpreter.size || thread.native >= thread.size || frame.owner >= frame.size ||
      frame.locals > frame.size || code.instructions > code.size + 8 ||
      objects.bytes.data >= objects.bytes.size || objects.text.ascii_size >= objects.text.size ||
      objects.object.type >= objects.object.size || frame.size > 512 || code.size > 4096) {
    return false;
  }
  auto offset = [](uint64_t value) { return static_cast<uint32_t>(value); };
  at.runtime_finalizing = offset(head.runtime.finalizing);
  at.runtime_interpreters = offset(head.runtime.interpreters_head);
  at.runtime_main = at.runtime_interpreters + sizeof(void *);
  at.interpreter_gil = offset(interpreter.gil);
  at.interpreter_id = offset(interpreter.id);
  at.interpreter_next = offset(interpreter.next);
  at.interpreter_threads = offset(interpreter.threads_head);
  at.thread_next = offset(thread.next);
  at.thread_interpreter = offset(thread.interpreter);
  at.thread_handle = offset(thread.handle);
  at.thread_native = offset(thread.native);
  at.thread_chunk = offset(thread.chunk);
  at.thread_top = at.thread_chunk + sizeof(void *);
  at.thread_frame = offset(thread.frame);
  at.frame_code = offset(frame.code);
  at.frame_instruction = offset(frame.instruction);
  at.frame_previous = offset(frame.previous);
  at.frame_owner = offset(frame.owner);
  at.frame_locals = offset(frame.locals);
  at.code_name = offset(code.name);
  at.code_qualified_name = offset(code.qualified_name);
  at.code_file = offset(code.file);
  at.code_first_line = offset(code.first_line);
  at.code_lines = offset(code.lines);
  at.code_instructions = offset(code.instructions);
  at.object_type = offset(objects.object.type);
  at.bytes_size = offset(objects.bytes.length);
  at.bytes_data = offset(objects.bytes.data);
  at.text_length = offset(objects.text.length);
  at.text_state = offset(objects.text.state);
  at.text_ascii = offset(objects.text.ascii_size);
  at.text_compact = at.text_ascii + 2 * sizeof(void *);
  return true;
}

// 3.14 has not been run: it follows what was published for it.
bool take_published(PythonRuntime &python, uint32_t minor) {
  const auto *from = reinterpret_cast<const char *>(python.address);
  if (std::memcmp(from, "xdebugpy", 8) != 0) {
    return false;
  }
  Offsets head;
  std::memcpy(&head, from, sizeof(head));
  python.free_threaded = head.free_threaded != 0;
  if (python.free_threaded) {
    return false;  // threads change their frames without a lock, and code is theirs alone
  }
  python.at = *python_layout(0x030d);
  python.at.version = 0x0300 | minor;
  return minor == 13 ? take_published<Interpreter313, Frame313, Code313>(from, python.at)
                     : take_published<Interpreter314, Frame314, Code314>(from, python.at);
}

// Of a library that was loaded for itself alone, as some programs load libpython.
int name_own(dl_phdr_info *info, size_t, void *name) {
  const char *path = info->dlpi_name;
  if (path == nullptr || std::strstr(path, "libpython") == nullptr || std::strlen(path) >= PATH_MAX) {
    return 0;
  }
  std::strcpy(static_cast<char *>(name), path);
  return 1;
}

// Opened only when the walk is over: whoever loads a library takes the loader's locks the other way round.
void *find_own() {
  char name[PATH_MAX] = "";
  dl_iterate_phdr(name_own, name);
  void *library = name[0] != '\0' ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (library != nullptr && dlsym(library, "_PyRuntime") == nullptr) {
    dlclose(library);
    return nullptr;
  }
  return library;  // and kept: what it is read for would be gone
}

bool look(PythonRuntime &python) {
  void *where = RTLD_DEFAULT;
  void *runtime = dlsym(where, "_PyRuntime");
  if (runtime == nullptr) {
    where = find_own();
    runtime = where != nullptr ? dlsym(where, "_PyRuntime") : nullptr;
  }
  if (runtime == nullptr) {
    return false;
  }
  auto address = [&](const char *name) { return reinterpret_cast<uintptr_t>(dlsym(where, name)); };
  python = {};
  python.address = reinterpret_cast<uintptr_t>(runtime);
  python.code_type = address("PyCode_Type");
  python.text_type = address("PyUnicode_Type");
  python.bytes_type = address("PyBytes_Type");
  unsigned major = 0, minor = 0, micro = 0;
  if (uintptr_t hex = address("Py_Version"); hex != 0) {
    unsigned long version = *reinterpret_cast<const unsigned long *>(hex);
    major = version >> 24 & 0xff;
    minor = version >> 16 & 0xff;
    micro = version >> 8 & 0xff;
  } else if (uintptr_t function = address("Py_GetVersion"); function != 0) {
    const char *text = reinterpret_cast<const char *(*)()>(function)();
    std::sscanf(text, "%u.%u.%u", &major, &minor, &micro);
  }
  std::snprintf(python.version, sizeof(python.version), "%u.%u.%u", major & 0xff, minor & 0xff, micro & 0xff);
  bool complete = major == 3 && python.code_type != 0 && python.text_type != 0 && python.bytes_type != 0;
  if (complete && minor < 13) {
    const PythonLayout *row = python_layout(0x0300 | minor);
    python.is_known = row != nullptr;
    python.at = row != nullptr ? *row : PythonLayout{};
  } else if (complete && minor <= 14) {
    python.is_known = take_published(python, minor);
  }
  return true;
}

enum Search : uint32_t { none, under_way, found };
std::atomic<uint32_t> g_search{none};
PythonRuntime g_python;  // written once

}  // namespace

const PythonLayout *python_layout(uint32_t version) {
  for (const PythonLayout &row : kTables) {
    if (row.version == version) {
      return &row;
    }
  }
  return nullptr;
}

const PythonRuntime *find_python() {
  uint32_t before = g_search.load(std::memory_order_acquire);
  if (before == none && g_search.compare_exchange_strong(before, under_way)) {
    before = look(g_python) ? found : none;
    g_search.store(before, std::memory_order_release);
  }
  return before == found ? &g_python : nullptr;
}

const PythonRuntime *known_python() {
  return g_search.load(std::memory_order_acquire) == found ? &g_python : nullptr;
}

void renew_python() {
  uint32_t before = under_way;
  g_search.compare_exchange_strong(before, none);
}

}  // namespace warplens::agent
