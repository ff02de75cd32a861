// Reads an event loop's tasks and what they await.
// All tasks are read at the same time, level by level: their coroutines, what these await, and so
// on. At the end everything is compared with the memory: if it is equal, all of it was true at one
// moment.
#include "task_reader.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "agent/python/memory/handles.h"
#include "agent/python/memory/texts.h"

namespace warplens::agent {
namespace {

constexpr size_t kWord = sizeof(uintptr_t);
constexpr size_t kAtOnce = 256;  // tasks: what bounds the memory that this takes
constexpr size_t kMostLevels = 64;
constexpr int32_t kMostDepth = 10'000;    // values of a frame
constexpr uintptr_t kTags = 7;            // 3.14: of a reference in a frame
constexpr uint32_t kNone = 0xffffffff;    // piece
constexpr uint32_t kTellsAwait = 0x030d;  // 3.13: from then on the state says whether it awaits or yields
constexpr uint8_t kAfterAwait = 2;        // or 3: of RESUME, behind `yield from` or `await`
constexpr size_t kMostLetters = 64;       // that tell one name from another
constexpr size_t kDigit = 4;              // bytes of a small number
constexpr size_t kClosure = 7;            // word of a function behind its head
constexpr size_t kMostItems = 8;          // of a closure
constexpr int kMostHops = 4;              // futures of futures
constexpr int64_t kMostCallbacks = 8;     // of a future

// What the state of a generator's frame means.
struct States {
  int8_t awaits, awaits_too, runs, ended;  // ended: and above
};

States states_of(uint32_t version) {
  return version >= 0x030f ? States{2, 3, 4, 5} : States{-1, -1, 0, 1};
}

bool is_object(uintptr_t address) {
  return address >= 4096 && address % 8 == 0;
}

}  // namespace

// Tasks of this loop: those of other threads are in the same set.
void TaskReader::read_tasks(const uintptr_t *addresses, size_t count, uintptr_t loop) {
  const uint32_t at = finder_.layout().coroutine;
  snapshot_.clear();
  for (size_t i = 0; i < count; ++i) {
    const auto owner = static_cast<uint32_t>(i);
    snapshot_.want(addresses[i] + python_.at.object_type, 5 * kWord,
                   owner);                                        // type, loop, callback, its context, more
    snapshot_.want(addresses[i] + at - kWord, 3 * kWord, owner);  // future, coroutine, name
  }
  snapshot_.read();
  chain_count_ = 0;
  for (size_t i = 0; i < count; ++i) {
    const auto owner = static_cast<uint32_t>(i);
    struct {
      uintptr_t type, loop, callback, context, callbacks;
    } head{};
    struct {
      uintptr_t future, coroutine, name;
    } body{};
    if (chains_.size() == chain_count_) {
      chains_.emplace_back();
    }
    Chain &chain = chains_[chain_count_++];
    chain.is_done = !snapshot_.get(2 * owner, 0, head) || !snapshot_.get(2 * owner + 1, 0, body) ||
                    head.loop != loop || !is_object(body.coroutine) || !finder_.is_task_type(head.type);
    chain.address = addresses[i];
    chain.coroutine = chain.at = body.coroutine;
    chain.name = body.name;
    chain.callback_piece = chain.name_piece = chain.letters_piece = kNone;
    chain.frames.clear();
    chain.is_wrapped = chain.runs = false;
    chain.waits = {body.future, 0, head.callbacks, {}};
    if (!chain.is_done && is_object(head.callback)) {
      chain.callback_piece = snapshot_.want(head.callback + python_.at.object_type, sizeof(Callback), owner);
    }
    if (!chain.is_done && is_object(body.name)) {
      chain.name_piece = snapshot_.want(body.name + python_.at.object_type, sizeof(Name), owner);
    }
  }
}

// The frame of the generator or coroutine in a piece; false where that is none. What comes next is wanted.
bool TaskReader::take_frame(Chain &chain, uint32_t owner) {
  const PythonLayout &at = python_.at;
  const char *bytes = snapshot_.at(chain.piece);
  uintptr_t type = 0;
  if (bytes == nullptr) {
    return false;
  }
  bytes -= at.object_type;
  std::memcpy(&type, bytes + at.object_type, kWord);
  if (type != python_.coroutine_type && type != python_.generator_type && type != python_.stream_type) {
    return false;
  }
  int8_t state = 0;
  std::memcpy(&state, bytes + at.generator_state, 1);
  const States states = states_of(at.version);
  if (state >= states.ended) {
    chain.is_done = chain.is_done || chain.frames.empty();
    return false;
  }
  RawFrame frame = reader_.parse(bytes + at.generator_frame);
  frame.address = chain.at + at.generator_frame;
  chain.frames.push_back(frame);
  chain.runs = state == states.runs;
  if (state < states.awaits || state > states.awaits_too) {
    return false;
  }
  uintptr_t top = 0;
  if (at.frame_top != kNoOffset) {
    std::memcpy(&top, bytes + at.generator_frame + at.frame_top, kWord);
  } else {
    int32_t depth = 0;
    std::memcpy(&depth, bytes + at.generator_frame + at.frame_depth, sizeof(depth));
    top = depth > 0 && depth < kMostDepth
              ? frame.address + at.frame_locals + static_cast<uintptr_t>(depth) * kWord
              : 0;
  }
  if (!is_object(top)) {
    return false;
  }
  // From 3.15 on, a number or nothing is above what it awaits.
  chain.top = snapshot_.want(top - 2 * kWord, 2 * kWord, owner);
  // Up to 3.12 the state does not tell `await` from `yield`, but the instruction where it goes on does.
  chain.next = at.version < kTellsAwait ? snapshot_.want(frame.instruction + 2, 2, owner) : kNone;
  return true;
}

// From what was read to the next object; at = 0 where the chain ends.
void TaskReader::go_on(Chain &chain) {
  uint8_t next[2] = {0, kAfterAwait};
  uintptr_t top[2] = {0, 0};
  if (chain.next != kNone) {
    snapshot_.get(chain.next, 0, next);
  }
  snapshot_.get(chain.top, 0, top);
  chain.at = is_object(top[1] & ~kTags) ? top[1] & ~kTags : top[0] & ~kTags;
  if ((next[1] & 3) < kAfterAwait || !is_object(chain.at)) {
    chain.at = 0;
  }
}

void TaskReader::read_chains() {
  const size_t size = python_.at.generator_frame + reader_.frame_size() - python_.at.object_type;
  open_.clear();
  for (size_t i = 0; i < chain_count_; ++i) {
    if (!chains_[i].is_done) {
      open_.push_back(static_cast<uint32_t>(i));
    }
  }
  for (size_t level = 0; level < kMostLevels && !open_.empty(); ++level) {
    for (uint32_t i : open_) {
      chains_[i].piece = snapshot_.want(chains_[i].at + python_.at.object_type, size, i);
    }
    snapshot_.read();
    std::vector<uint32_t> further;
    for (uint32_t i : open_) {
      Chain &chain = chains_[i];
      uintptr_t inner = 0;
      chain.top = kNone;
      if (take_frame(chain, i)) {
        chain.is_wrapped = false;
        further.push_back(i);
      } else if (!chain.is_wrapped && !chain.runs && !chain.is_done && !chain.frames.empty() &&
                 snapshot_.get(chain.piece, kWord, inner) && is_object(inner)) {
        // An object that stands for a coroutine, as those of an asynchronous generator do, has it as its first field.
        chain.is_wrapped = true;
        chain.at = inner;
        further.push_back(i);
      }
    }
    snapshot_.read();
    open_.clear();
    for (uint32_t i : further) {
      if (chains_[i].top != kNone) {
        go_on(chains_[i]);
      }
      if (chains_[i].at != 0) {
        open_.push_back(i);
      }
    }
  }
}

// Where a name has its letters or digits, from its own address: no byte more than it has, since what lies behind it changes, and without
// the hash of a text, which is made later.
TaskReader::Letters TaskReader::letters_of(const Name &name) const {
  const PythonLayout &at = python_.at;
  if (name.type != python_.text_type) {
    return {head() + kWord, kDigit};
  }
  return {at.text_state, at.text_ascii - at.text_state + std::min<size_t>(name.size, kMostLetters)};
}

void TaskReader::read_names() {
  for (size_t i = 0; i < chain_count_; ++i) {
    Chain &chain = chains_[i];
    Name name{};
    if (chain.name_piece != kNone && snapshot_.get(chain.name_piece, 0, name)) {
      Letters letters = letters_of(name);
      chain.letters_piece =
          snapshot_.want(chain.name + letters.from, letters.count, static_cast<uint32_t>(i));
    }
  }
  snapshot_.read();
}

uint64_t TaskReader::print_of(const Name &name, const char *letters, size_t count) {
  uint64_t print = name.type ^ name.size;
  for (size_t i = 0; i < count; ++i) {
    print = (print ^ static_cast<unsigned char>(letters[i])) * 0x100000001b3;
  }
  return print;
}

// A thread that did not run changed nothing.
void TaskReader::drop_changed(const PythonThread &thread, int64_t cpu_before) {
  changed_.assign(chain_count_, false);
  if (cpu_before < 0 || thread_cpu_ns(thread.tid) != cpu_before) {
    snapshot_.compare(changed_);
  }
}

// From what was read to tasks.
void TaskReader::resolve() {
  for (size_t i = 0; i < chain_count_; ++i) {
    Chain &chain = chains_[i];
    if (chain.is_done) {
      continue;
    }
    SeenTask task{chain.address,
                  chain.coroutine,
                  chain.name,
                  0,
                  TaskState::awaiting,
                  SeenTask::kNobody,
                  static_cast<uint32_t>(frames_.size()),
                  0};
    Name name{};
    const char *letters = chain.letters_piece != kNone ? snapshot_.at(chain.letters_piece) : nullptr;
    if (letters != nullptr && snapshot_.get(chain.name_piece, 0, name)) {
      task.name_print = print_of(name, letters, letters_of(name).count);
    }
    task.state = chain.runs                ? TaskState::running
                 : chain.waits.future == 0 ? TaskState::ready
                                           : TaskState::awaiting;
    for (size_t k = 0; !changed_[i] && k < chain.frames.size(); ++k) {
      const RawFrame &raw = chain.frames[k];
      const PythonFrame *frame = resolve(raw);
      if (frame == nullptr) {
        changed_[i] = true;
        break;
      }
      frames_.push_back(*frame);
      if (reader_.codes().code(frame->code).awaits_group &&
          copy_memory(chain.waits.group, raw.address + python_.at.frame_locals)) {
        chain.waits.group &= ~kTags;
      }
    }
    task.count = changed_[i] ? 0 : static_cast<uint32_t>(frames_.size()) - task.first;
    frames_.resize(task.first + task.count);
    if (chain.callback_piece != kNone) {
      snapshot_.get(chain.callback_piece, 0, chain.waits.callback);
    }
    tasks_.push_back(task);
    waits_.push_back(chain.waits);
  }
}

// Many tasks are at the same place.
const PythonFrame *TaskReader::resolve(const RawFrame &raw) {
  FrameKey key{raw.code, raw.instruction, raw.copy};
  auto known = known_frames_.find(key);
  if (known == known_frames_.end()) {
    PythonFrame frame{};
    if (!reader_.resolve(raw, frame)) {
      frame.code = PythonCodes::kNone;
    }
    known = known_frames_.emplace(key, frame).first;
  }
  return known->second.code != PythonCodes::kNone ? &known->second : nullptr;
}

// A future calls back when it is done: the callback belongs to the waiting task, is a method of a group of tasks, or a function
// with the future in its closure that the task waits for.
void TaskReader::find_awaiters() {
  indices_.clear();
  awaiters_.clear();
  known_tuples_.clear();
  for (size_t i = 0; i < tasks_.size(); ++i) {
    indices_[tasks_[i].address] = static_cast<uint32_t>(i);
    for (uintptr_t object : {waits_[i].future, waits_[i].group}) {
      if (is_object(object) && tasks_[i].count != 0) {
        awaiters_[object] = static_cast<uint32_t>(i);
      }
    }
  }
  if (awaiters_.empty()) {
    return;
  }
  for (size_t i = 0; i < tasks_.size(); ++i) {
    uint32_t found = SeenTask::kNobody;
    if (auto direct = awaiters_.find(tasks_[i].address); direct != awaiters_.end()) {
      found = direct->second;
    } else if (waits_[i].callback.type != 0) {
      found = awaiter_by(waits_[i].callback, 0);
    }
    if (found == SeenTask::kNobody) {
      found = awaiter_in_list(waits_[i].callbacks, 0);
    }
    tasks_[i].awaited_by = found != i ? found : SeenTask::kNobody;
  }
}

// What a function has in its closure, or a functools.partial among its arguments: the future that a task waits
// for, or one at the end of a chain of waits.
uint32_t TaskReader::awaiter_in_tuple(uintptr_t tuple, int hops) {
  struct {
    uintptr_t type;
    int64_t count;
    uintptr_t fields[1 + kMostItems];
  } read{};
  const uintptr_t *items = read.fields + first_item();
  if (!is_object(tuple) || !copy_memory(read, tuple + python_.at.object_type) ||
      read.type != python_.tuple_type) {
    return SeenTask::kNobody;
  }
  uintptr_t futures[kMostItems];
  size_t count = 0;
  for (size_t i = 0; i < kMostItems && static_cast<int64_t>(i) < read.count; ++i) {
    uintptr_t cell[2] = {0, 0};  // type, and what is in it
    if (!is_object(items[i]) || !copy_memory(cell, items[i] + python_.at.object_type)) {
      continue;
    }
    uintptr_t object = cell[0] == python_.cell_type ? cell[1] : items[i];
    if (indices_.contains(object)) {
      continue;  // a task that gets the callback, as in 3.14, but another future wakes it
    }
    if (auto found = awaiters_.find(object); found != awaiters_.end()) {
      return found->second;
    }
    if (is_object(object)) {
      futures[count++] = object;
    }
  }
  for (size_t i = 0; i < count && hops < kMostHops; ++i) {
    if (uint32_t found = awaiter_of_future(futures[i], hops + 1); found != SeenTask::kNobody) {
      return found;
    }
  }
  return SeenTask::kNobody;
}

uint32_t TaskReader::awaiter_by(const Callback &callback, int hops) {
  uintptr_t tuple = callback.fields[1];
  if (callback.type == python_.function_type) {
    tuple = callback.fields[kClosure];
  } else {
    for (uintptr_t object : {callback.fields[0], callback.fields[1]}) {
      if (auto own = indices_.find(object); own != indices_.end()) {
        return own->second;
      }
      if (auto found = awaiters_.find(object); found != awaiters_.end()) {
        return found->second;
      }
    }
  }
  auto known = known_tuples_.find(tuple);
  if (known == known_tuples_.end()) {
    known_tuples_[tuple] = SeenTask::kNobody;
    uint32_t found = awaiter_in_tuple(tuple, hops);
    known = known_tuples_.insert_or_assign(tuple, found).first;
  }
  return known->second;
}

uint32_t TaskReader::awaiter_in_list(uintptr_t list, int hops) {
  struct {
    int64_t count;
    uintptr_t items;
  } read{};
  uint32_t found = SeenTask::kNobody;
  if (!is_object(list) || !copy_memory(read, list + head())) {
    return found;
  }
  for (int64_t i = 0; i < read.count && i < kMostCallbacks && found == SeenTask::kNobody; ++i) {
    uintptr_t pair = 0, object = 0;
    Callback callback;
    if (copy_memory(pair, read.items + static_cast<uintptr_t>(i) * kWord) && is_object(pair) &&
        copy_memory(object, pair + head() + (1 + first_item()) * kWord) && is_object(object) &&
        copy_memory(callback, object + python_.at.object_type)) {
      found = awaiter_by(callback, hops);
    }
  }
  return found;
}

uint32_t TaskReader::awaiter_of_future(uintptr_t future, int hops) {
  uintptr_t type = 0, fields[4] = {};  // loop, callback, its context, more callbacks
  Callback callback;
  uint32_t found = SeenTask::kNobody;
  if (!copy_memory(type, future + python_.at.object_type) || !finder_.is_future_type(type) ||
      !copy_memory(fields, future + head())) {
    return found;
  }
  if (is_object(fields[1]) && copy_memory(callback, fields[1] + python_.at.object_type)) {
    found = awaiter_by(callback, hops);
  }
  return found != SeenTask::kNobody ? found : awaiter_in_list(fields[3], hops);
}

bool TaskReader::read_name(const SeenTask &task, std::string &text, bool &is_own) const {
  Name name{};
  char letters[kMostLetters + sizeof(uintptr_t[4])];
  is_own = read_text(python_, task.name, text);
  if (!copy_memory(name, task.name + python_.at.object_type)) {
    return false;
  }
  const Letters its = letters_of(name);
  if (its.count > sizeof(letters) || !copy_memory(letters, task.name + its.from, its.count) ||
      print_of(name, letters, its.count) != task.name_print) {
    return false;
  }
  if (!is_own && name.size >> 3 == 1) {  // from 3.13 on, a number: its size and sign, then digits of 30 bits
    uint32_t digit = 0;
    std::memcpy(&digit, letters, sizeof(digit));
    text = "Task-" + std::to_string(digit & 0x3fffffff);
  } else if (text.starts_with("Task-") && text.find_first_not_of("0123456789", 5) == std::string::npos) {
    is_own = false;
  }
  return true;
}

void TaskReader::read(const PythonThread &thread, const PythonStack &stack) {
  int64_t cpu = thread_cpu_ns(thread.tid);
  tasks_.clear();
  waits_.clear();
  frames_.clear();
  known_frames_.clear();
  finder_.find(thread.address, stack.globals, addresses_);
  if (addresses_.empty() || finder_.layout().coroutine == 0) {
    return;
  }
  std::sort(addresses_.begin(), addresses_.end());  // neighbours lie in one page
  for (size_t first = 0; first < addresses_.size(); first += kAtOnce) {
    read_tasks(addresses_.data() + first, std::min(kAtOnce, addresses_.size() - first), stack.loop);
    read_chains();
    read_names();
    drop_changed(thread, cpu);
    resolve();
  }
  if (tasks_.empty()) {
    finder_.forget();  // what was learned of tasks may be wrong
  }
  find_awaiters();
}

}  // namespace warplens::agent
