// Finds the CPython of this process and its memory layout.
#include "layout.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace warplens::agent {
namespace {

// Offsets of a version, and from 3.13 on where in `_PyRuntime` CPython publishes them for debuggers.
struct Row {
  PythonLayout at;
  PythonLayout published = {};  // places; of version 0: nothing is published
  bool free_threaded = false;
};

constexpr Row kTables[] = {
#include "layout_tables.inc"
};
constexpr unsigned kPublishes = 13;      // 3.13 was the first that publishes anything
constexpr uint64_t kMostOffset = 65536;  // of anything published
constexpr size_t kFields = sizeof(PythonLayout) / sizeof(uint32_t);

const Row *row_of(uint32_t version, bool free_threaded) {
  auto is_it = [=](const Row &row) {
    return row.at.version == version && row.free_threaded == free_threaded;
  };
  const Row *row = std::find_if(std::begin(kTables), std::end(kTables), is_it);
  return row != std::end(kTables) ? row : nullptr;
}

// The order in which the interpreter has kept its fields since 3.13. What is nonsense will not be in it.
bool hangs_together(const PythonLayout &at) {
  return at.runtime_finalizing < at.runtime_interpreters && at.thread_next < at.thread_interpreter &&
         at.thread_interpreter < at.thread_frame && at.thread_frame < at.thread_native &&
         at.thread_native < at.thread_chunk && at.frame_code < at.frame_previous &&
         at.frame_previous < at.frame_instruction && at.frame_instruction < at.frame_owner &&
         at.frame_owner < at.frame_locals && at.code_first_line < at.code_file &&
         at.code_file < at.code_lines && at.code_lines < at.code_instructions && at.object_type != 0 &&
         at.bytes_size < at.bytes_data && at.text_length < at.text_state && at.text_state < at.text_ascii;
}

// How what is published begins.
struct PublishedHead {
  char cookie[8];
  uint64_t version, free_threaded;
};

// False where nothing is published.
bool read_head(const PythonRuntime &python, PublishedHead &head) {
  std::memcpy(&head, reinterpret_cast<const char *>(python.address), sizeof(head));
  return std::memcmp(head.cookie, "xdebugpy", 8) == 0;
}

// Replaces the offsets of a row by those that are published. False: nothing is, or not for this version.
bool take_published(PythonRuntime &python, const PythonLayout &published) {
  PublishedHead head;
  const auto *from = reinterpret_cast<const char *>(python.address);
  if (!read_head(python, head) || head.version >> 16 != published.version) {
    return false;
  }
  uint32_t places[kFields], offsets[kFields];
  std::memcpy(places, &published, sizeof(places));
  std::memcpy(offsets, &python.at, sizeof(offsets));
  for (size_t i = 1; i < kFields; ++i) {  // 0 is the version
    uint64_t value = 0;
    if (places[i] == kNoOffset) {
      continue;
    }
    std::memcpy(&value, from + places[i], sizeof(value));
    if (value >= kMostOffset) {
      return false;
    }
    offsets[i] = static_cast<uint32_t>(value);
  }
  PythonLayout before = python.at;
  std::memcpy(&python.at, offsets, sizeof(offsets));
  if (!hangs_together(python.at)) {
    return false;
  }
  // Unpublished neighbours of published fields.
  python.at.runtime_initialized += python.at.runtime_finalizing - before.runtime_finalizing;
  python.at.runtime_main += python.at.runtime_interpreters - before.runtime_interpreters;
  python.at.thread_top += python.at.thread_chunk - before.thread_chunk;
  python.at.thread_exceptions += python.at.thread_handle - before.thread_handle;
  return true;
}

// What is known of a version.
bool take_layout(PythonRuntime &python, uint32_t version) {
  const Row *row = row_of(version, python.free_threaded);
  if (row == nullptr) {
    return false;
  }
  python.at = row->at;
  return row->published.version == 0 || take_published(python, row->published);
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

// Opened only when the walk is over: a thread that loads a library takes the loader's locks in the opposite order.
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
  python.none = address("_Py_NoneStruct");
  python.coroutine_type = address("PyCoro_Type");
  python.generator_type = address("PyGen_Type");
  python.stream_type = address("PyAsyncGen_Type");
  python.set_type = address("PySet_Type");
  python.number_type = address("PyLong_Type");
  python.tuple_type = address("PyTuple_Type");
  python.cell_type = address("PyCell_Type");
  python.function_type = address("PyFunction_Type");
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
  PublishedHead head;
  python.free_threaded =
      major == 3 && minor >= kPublishes && read_head(python, head) && head.free_threaded != 0;
  std::snprintf(python.version, sizeof(python.version), "%u.%u.%u%s", major & 0xff, minor & 0xff,
                micro & 0xff, python.free_threaded ? "t" : "");
  bool complete = major == 3 && python.code_type != 0 && python.text_type != 0 && python.bytes_type != 0;
  python.is_known = complete && take_layout(python, 0x0300 | (minor & 0xff));
  return true;
}

enum Search : uint32_t { none, under_way, found };
std::atomic<uint32_t> g_search{none};
PythonRuntime g_python;  // written once

}  // namespace

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
