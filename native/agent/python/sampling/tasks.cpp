// Finds the asyncio task that a stack belongs to.
// An event loop runs a handle, whose callback is a method of a task, which has a coroutine and,
// right behind it, a name. These structures are private: the reader looks for fitting words, and
// the known coroutine proves that it is the right object.
#include "tasks.h"

#include <cstring>
#include <iterator>

#include "agent/python/memory/memory.h"
#include "agent/python/memory/texts.h"

namespace warplens::agent {
namespace {

constexpr size_t kWords = 12;      // of a handle
constexpr size_t kTaskWords = 40;  // of a task: its fields, and some more

struct Callback {
  uintptr_t
      words[6];  // the task is the first field of the wrapper of a step, and the second of a built-in method
};

// Words before the fields of an object: its type is the last of them.
size_t head_words(const PythonRuntime &python) {
  return python.at.object_type / sizeof(uintptr_t) + 1;
}

// A number in a name's place: tasks without a name are numbered from 3.13 on, and called Task-7 when asked.
bool read_number(const PythonRuntime &python, uintptr_t address, std::string &name) {
  uintptr_t words[2];  // behind the head: size and sign, digits of 30 bits
  if (!copy_memory(words, address + head_words(python) * sizeof(uintptr_t)) || words[0] >> 3 != 1 ||
      (words[0] & 3) != 0) {
    return false;
  }
  name = "Task-" + std::to_string(static_cast<uint32_t>(words[1]) & 0x3fffffff);
  return true;
}

bool name_of(const PythonRuntime &python, uintptr_t task, uintptr_t coroutine, std::string &name) {
  uintptr_t words[kTaskWords];
  size_t size = sizeof(words);
  if (task % 8 != 0) {
    return false;
  }
  while (size > 128 && !copy_memory(words, task, size)) {
    size -= 64;  // it may be the last object before the end of what is mapped
  }
  for (size_t i = head_words(python); i + 1 < size / 8; ++i) {
    if (words[i] == coroutine) {
      return read_text(python, words[i + 1], name) ||
             (python.at.version >= 0x030c && read_number(python, words[i + 1], name));
    }
  }
  return false;
}

}  // namespace

bool read_task_name(const PythonRuntime &python, uintptr_t handle, uintptr_t coroutine, std::string &name) {
  uintptr_t words[kWords];
  if (handle % 8 != 0 || !copy_memory(words, handle)) {
    return false;
  }
  const size_t head = head_words(python);
  for (size_t i = head; i < kWords; ++i) {
    Callback callback;
    if (words[i] < 4096 || words[i] % 8 != 0 || !copy_memory(callback, words[i])) {
      continue;
    }
    for (size_t field = head; field < head + 2 && field < std::size(callback.words); ++field) {
      if (callback.words[field] >= 4096 && name_of(python, callback.words[field], coroutine, name)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace warplens::agent
