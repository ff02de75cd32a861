// Finds asyncio's live tasks in memory.
// These structures are private to asyncio, so an object counts only if its type is right.
#include "task_finder.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "agent/python/memory/memory.h"
#include "agent/python/memory/snapshot.h"
#include "agent/python/memory/texts.h"

namespace warplens::agent {
namespace {

constexpr size_t kWord = sizeof(uintptr_t);
constexpr size_t kMostWords = 64;  // of a task
constexpr size_t kFewestWords = 16;
constexpr uint32_t kMostState = 4096;           // of a thread's state, up to its list of tasks
constexpr size_t kMostEntries = 4096;           // of a module's dict
constexpr size_t kMostSlots = size_t{1} << 17;  // of a set
constexpr int kMostBases = 8;
constexpr size_t kMostTypes = 4096;
constexpr uint32_t kHasLists = 0x030e;  // 3.14

// Words before the fields of an object: its type is the last of them.
size_t head_words(const PythonRuntime &python) {
  return python.at.object_type / kWord + 1;
}

uintptr_t type_of(const PythonRuntime &python, uintptr_t object) {
  uintptr_t type = 0;
  return object >= 4096 && object % 8 == 0 && copy_memory(type, object + python.at.object_type) ? type : 0;
}

}  // namespace

// By the names of a type and those above it.
TaskFinder::Kind TaskFinder::kind_of(uintptr_t type) {
  if (auto known = types_.find(type); known != types_.end()) {
    return known->second;
  }
  constexpr size_t kBase =
      29;  // words behind the name, which is the first field of a type behind its head and its size
  const size_t head = (head_words(python_) + 1) * kWord;
  Kind kind = Kind::other;
  uintptr_t at = type;
  for (int i = 0; i < kMostBases && at != 0 && type_of(python_, at) != 0; ++i) {
    uintptr_t name = 0, base = 0;
    char text[32] = "";
    if (!copy_memory(name, at + head) || !copy_memory(base, at + head + kBase * kWord)) {
      break;
    }
    if (copy_memory(text, name, sizeof(text))) {
      text[sizeof(text) - 1] = '\0';
      if (std::strcmp(text, "_asyncio.Task") == 0 || std::strcmp(text, "_asyncio.Future") == 0) {
        kind = text[9] == 'T' ? Kind::task : Kind::future;
        break;
      }
    }
    at = base;
  }
  if (types_.size() < kMostTypes) {
    types_[type] = kind;
  }
  return kind;
}

bool TaskFinder::is_task_type(uintptr_t type) {
  return kind_of(type) == Kind::task;
}

bool TaskFinder::is_future_type(uintptr_t type) {
  return kind_of(type) == Kind::future;
}

// The value of a name in a dict whose keys are all str.
uintptr_t TaskFinder::in_dict(uintptr_t dict, std::string_view name) const {
  struct Keys {
    uint64_t references;
    uint8_t log_size, log_bytes, kind, unused;
    uint32_t version;
    int64_t usable, count;
  } keys;
  struct Entry {
    uintptr_t key, value;
  };
  uintptr_t at = 0;
  if (!copy_memory(at, dict + (head_words(python_) + 2) * kWord) || !copy_memory(keys, at) ||
      keys.kind != 1 || keys.count < 0 || keys.log_bytes > 24) {
    return 0;
  }
  std::vector<Entry> entries(std::min(static_cast<size_t>(keys.count), kMostEntries));
  std::string text;
  if (!copy_memory(entries.data(), at + sizeof(keys) + (size_t{1} << keys.log_bytes),
                   entries.size() * sizeof(Entry))) {
    return 0;
  }
  for (const Entry &entry : entries) {
    if (entry.value != 0 && read_text(python_, entry.key, text) && text == name) {
      return entry.value;
    }
  }
  return 0;
}

// Its attribute `data`, which is the first that is set: in values beside the object, in the object, or in a dict.
uintptr_t TaskFinder::set_in(uintptr_t weak_set) const {
  auto is_set = [&](uintptr_t object) { return type_of(python_, object) == python_.set_type; };
  uintptr_t around[16] = {};  // four words before it, and then the object
  if (!copy_memory(around, weak_set - 4 * kWord, sizeof(around))) {
    return 0;
  }
  for (size_t i = 4; i < std::size(around); ++i) {
    if (is_set(around[i])) {
      return around[i];
    }
  }
  for (size_t i = 0; i < 2; ++i) {
    uintptr_t values[4] = {};
    uintptr_t at = around[i] & ~uintptr_t{1};
    // 3.12 marks the address of values by its lowest bit, or keeps it one word further.
    for (uintptr_t place : {at, around[i] + 1}) {
      if (place < 4096 || place % 8 != 0 || !copy_memory(values, place)) {
        continue;
      }
      for (uintptr_t value : values) {
        if (is_set(value)) {
          return value;
        }
      }
    }
    if (uintptr_t found = at >= 4096 && at % 8 == 0 ? in_dict(at, "data") : 0; is_set(found)) {
      return found;
    }
  }
  return 0;
}

uintptr_t TaskFinder::find_set(uintptr_t globals) {
  if (auto known = sets_.find(globals); known != sets_.end()) {
    if (type_of(python_, known->second) == python_.set_type) {
      return known->second;
    }
    sets_.erase(known);
  }
  uintptr_t module = in_dict(globals, "tasks");
  uintptr_t dict = 0;
  if (module == 0 || !copy_memory(dict, module + head_words(python_) * kWord)) {
    return 0;
  }
  uintptr_t weak_set = in_dict(dict, python_.at.version >= 0x030c ? "_scheduled_tasks" : "_all_tasks");
  uintptr_t set = weak_set != 0 ? set_in(weak_set) : 0;
  if (set != 0) {
    sets_[globals] = set;
  }
  return set;
}

void TaskFinder::of_set(uintptr_t set, std::vector<uintptr_t> &tasks) {
  struct Slot {
    uintptr_t key;
    int64_t hash;
  };
  struct Fields {
    int64_t filled, used, mask;
    uintptr_t table;
  } fields;
  const size_t head = head_words(python_) * kWord;
  if (!copy_memory(fields, set + head) || fields.mask < 0) {
    return;
  }
  std::vector<Slot> slots(std::min(static_cast<size_t>(fields.mask) + 1, kMostSlots));
  if (!copy_memory(slots.data(), fields.table, slots.size() * sizeof(Slot))) {
    return;
  }
  Snapshot references;  // a weak reference has what it refers to right behind its head
  for (const Slot &slot : slots) {
    if (slot.key >= 4096 && slot.key % 8 == 0 && slot.hash != -1) {
      references.want(slot.key + head, kWord, 0);
      tasks.push_back(slot.key);
      if (tasks.size() == kMostTasks) {
        break;
      }
    }
  }
  references.read();
  size_t kept = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    uintptr_t task = 0;
    if (references.get(static_cast<uint32_t>(i), 0, task) && task >= 4096 && task % 8 == 0) {
      tasks[kept++] = task;
    }
  }
  tasks.resize(kept);
}

// Where in its task a link is: the nearest type before it is the task's. 0 where that is none.
uint32_t TaskFinder::link_in_task(uintptr_t link) {
  uintptr_t before[kMostWords] = {};
  size_t count = kMostWords;
  while (count >= kFewestWords && !copy_memory(before, link - count * kWord, count * kWord)) {
    count /= 2;  // it may be the first object behind the beginning of what is mapped
  }
  for (size_t i = count; count >= kFewestWords && i-- > 0;) {
    if (before[i] < 4096 || type_of(python_, before[i]) == 0 || !is_task_type(before[i])) {
      continue;
    }
    auto distance = static_cast<uint32_t>((count - i) * kWord + python_.at.object_type);
    return learn(link - distance) ? distance : 0;
  }
  return 0;
}

// A ring of links in a thread's state and its tasks: of those in the state, the one that leads to a task.
uint32_t TaskFinder::find_list(uintptr_t thread) {
  uintptr_t state[kMostState / kWord] = {};
  size_t size = sizeof(state);
  while (size > 512 && !copy_memory(state, thread, size)) {
    size -= 256;
  }
  for (size_t i = 0; i + 1 < size / kWord; ++i) {
    uintptr_t own = thread + i * kWord, back = 0, forth = 0;
    if (state[i] < 4096 || state[i] % 8 != 0 || state[i] == own || state[i + 1] < 4096 ||
        state[i + 1] % 8 != 0 || !copy_memory(back, state[i] + kWord) || back != own ||
        !copy_memory(forth, state[i + 1]) || forth != own) {
      continue;
    }
    if (uint32_t link = link_in_task(state[i])) {
      layout_.link = link;
      return list_ = static_cast<uint32_t>(i * kWord);
    }
  }
  return 0;
}

void TaskFinder::of_list(uintptr_t thread, std::vector<uintptr_t> &tasks) {
  if (list_ == 0 && find_list(thread) == 0) {
    return;
  }
  uintptr_t next = 0, head = thread + list_;
  if (!copy_memory(next, head)) {
    return;
  }
  while (next != head && next >= 4096 && next % 8 == 0 && tasks.size() < kMostTasks) {
    tasks.push_back(next - layout_.link);
    if (!copy_memory(next, next)) {
      break;
    }
  }
}

// Where a task has its coroutine: the name is right behind it, a str or a number.
bool TaskFinder::learn(uintptr_t task) {
  if (layout_.coroutine != 0) {
    return true;
  }
  uintptr_t words[kMostWords] = {};
  size_t size = sizeof(words);
  while (size > 128 && !copy_memory(words, task, size)) {
    size -= 64;
  }
  for (size_t i = head_words(python_) + 4; i + 1 < size / kWord; ++i) {
    uintptr_t type = type_of(python_, words[i]), behind = type_of(python_, words[i + 1]);
    if (type != 0 && (type == python_.coroutine_type || type == python_.generator_type) &&
        (behind == python_.text_type || behind == python_.number_type)) {
      layout_.coroutine = static_cast<uint32_t>(i * kWord);
      return true;
    }
  }
  return false;
}

void TaskFinder::find(uintptr_t thread, uintptr_t globals, std::vector<uintptr_t> &tasks) {
  tasks.clear();
  if (python_.at.version >= kHasLists) {
    of_list(thread, tasks);
    return;
  }
  uintptr_t set = find_set(globals);
  if (set == 0) {
    return;
  }
  of_set(set, tasks);
  for (size_t i = 0; layout_.coroutine == 0 && i < tasks.size(); ++i) {
    if (is_task_type(type_of(python_, tasks[i]))) {
      learn(tasks[i]);
    }
  }
}

}  // namespace warplens::agent
