// Opens a process's log, and handles threads, ranges across threads, and forks.
#include "process_log.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace warplens {
namespace {

constexpr std::atomic<uint32_t> kAlwaysOpen{1};
constexpr uint32_t kNotSeen = 0xffffffff;  // no value of a gate

MetaRecord about_thread(uint32_t index) {
  MetaRecord record{};
  record.thread = index;
  record.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return record;
}

}  // namespace

int ProcessLog::open(const std::string &path, std::string_view json, const ClockParams &clock,
                     ControlPage *control) {
  clock_ = clock;
  control_ = control;
  int error = file_.create(path, json, clock, control);
  if (error == 0) {
    names_.attach(writer_);
  }
  return error;
}

void ProcessLog::finish() {
  std::lock_guard lock(slots_mutex_);
  slots_.clear();
  free_slots_.clear();
  names_.detach([this] { file_.finish(now_ns(clock_)); });
}

ThreadLog *ProcessLog::enter_thread(ThreadLog *spare) {
  ThreadLog *log = nullptr;
  uint32_t index = 0;
  {
    std::lock_guard lock(threads_mutex_);
    index = next_thread_++;
    if (spare == nullptr && (log = free_threads_) != nullptr) {
      free_threads_ = log->next_free_;
    }
  }
  if (log == nullptr) {
    // Straight from the kernel: untouched pages cost nothing.
    void *memory = spare != nullptr ? spare : map_memory(sizeof(ThreadLog));
    if (memory == nullptr) {
      return nullptr;
    }
    log = new (memory) ThreadLog;
    log->process_ = this;
    log->clock_ = &clock_;
    log->generation_ = generation_;
    log->gate_ = control_ == nullptr ? &kAlwaysOpen : &control_->gate;
    log->open_gate_ = control_ == nullptr ? kAlwaysOpen.load() : kNotSeen;
  }
  MetaRecord record = about_thread(index);
  record.start = now_ns(clock_);
  char name[17] = {};
  prctl(PR_GET_NAME, name);
  uint32_t number = intern(name);
  if (file_.keep_ns() == 0) {
    writer_.record({RecordType::thread, 0, 0, number}, record);
  }
  log->take_over(record, number);
  if (log->pieces_used_ != 0) {
    auto *chunk = reinterpret_cast<ChunkHeader *>(log->pieces_[0].begin) - 1;
    std::atomic_ref(chunk->thread).store(index, std::memory_order_release);
  }
  return log;
}

void ProcessLog::leave_thread(ThreadLog *log) {
  // Ranges still open stay in the stack, marked as this thread's: the next owner starts its own stack.
  log->trim();
  if (log->top_ != log->top_begin_ || log->pieces_used_ > 1 || log->keeps_closed_) {
    log->pieces_used_ = 0;
    log->kept_ = nullptr;
    log->keeps_closed_ = false;
    log->piece_ = 0;
    log->top_ = log->top_begin_ = log->top_end_ = nullptr;
  }
  log->holes_ = log->unstored_ = log->task_ = log->written_task_ = 0;
  std::fill(std::begin(log->level_), std::end(log->level_), 0u);
  // A chunk that is used up goes to nobody; small chunks again for the next owner, who may write little.
  log->chunk_size_ = std::min(log->chunk_size_, ThreadLog::kFirstChunk);
  std::lock_guard lock(threads_mutex_);
  log->next_free_ = free_threads_;
  free_threads_ = log;
}

Lane *ProcessLog::enter_lane() {
  std::lock_guard lock(threads_mutex_);
  if (Lane *lane = free_lanes_) {
    free_lanes_ = lane->next_free_;
    return lane;
  }
  return new (std::nothrow) Lane(file_, generation_);
}

// What is left of its chunks serves the next one.
void ProcessLog::leave_lane(Lane *lane) {
  for (WideStream &stream : lane->streams_) {
    stream.shrink();
  }
  std::lock_guard lock(threads_mutex_);
  lane->next_free_ = free_lanes_;
  free_lanes_ = lane;
}

bool ProcessLog::define(ThreadLog &log, uint16_t domain, uint32_t kind, uint64_t id, std::string_view json) {
  MetaRecord record{};
  record.start = now_ns(clock_);
  record.id = id;
  record.thread = log.index();
  return names_.define(domain, kind, record, json);
}

bool ProcessLog::add_slots() {
  if (slots_.size() == kSlotChunks) {
    return false;
  }
  Chunk chunk = file_.allocate_lasting(ChunkKind::open, sizeof(OpenSlot), kNoThread, 16384);
  if (!chunk) {
    return false;
  }
  // A chunk cut short at the end of a step offers fewer slots; numbers stay regular.
  size_t count = std::min(kSlotsPerChunk, (chunk.size - sizeof(ChunkHeader)) / sizeof(OpenSlot));
  try {
    auto first = static_cast<uint32_t>(slots_.size() * kSlotsPerChunk);
    turns_.resize(std::max(turns_.size(), first + kSlotsPerChunk), first_turn_);
    is_parent_.resize(turns_.size());
    free_slots_.reserve(free_slots_.size() + turns_.size());
    slots_.push_back({reinterpret_cast<OpenSlot *>(chunk.contents()), count});
    for (size_t i = count; i-- > 0;) {
      free_slots_.push_back(first + static_cast<uint32_t>(i));
    }
  } catch (...) {
    return false;
  }
  return true;
}

uint64_t ProcessLog::start_range(ThreadLog &log, uint16_t domain, const Label &label, uint32_t task,
                                 uint64_t parent, uint64_t start) {
  ThreadLog::Busy busy(log);
  if (!busy) {
    file_.count(kInSignal);
    return 0;
  }
  std::lock_guard lock(slots_mutex_);
  if (free_slots_.empty() && !add_slots()) {
    file_.drop(RecordType::start_end);
    return 0;
  }
  uint32_t index = free_slots_.back();
  free_slots_.pop_back();
  OpenSlot *open = slot(index);
  uint32_t turn = ++turns_[index];
  last_turn_ = std::max(last_turn_, turn);
  uint64_t id = (static_cast<uint64_t>(turn) << 32) | (index + 1);
  is_parent_[index] = false;
  if (parent != 0) {
    mark_as_parent(parent);
  }
  open->id = id;
  open->parent = parent;
  open->thread = log.index();
  open->task = task;
  copy_details(&open->event, label);
  open->event.start = start != 0 ? start : now_ns(clock_);
  commit(open, {RecordType::start_end, label.flags, domain, label.name});
  return id;
}

OpenSlot *ProcessLog::open_slot(uint64_t id) {
  auto index = static_cast<uint32_t>(id) - 1;
  if (index / kSlotsPerChunk >= slots_.size() ||
      index % kSlotsPerChunk >= slots_[index / kSlotsPerChunk].count) {
    return nullptr;
  }
  OpenSlot *open = slot(index);
  const RecordHead &head = open->event.head;
  bool is_open = head.type != RecordType::none && (head.flags & kFlagClosed) == 0;
  return open->id == id && is_open ? open : nullptr;
}

void ProcessLog::mark_as_parent(uint64_t id) {
  if (open_slot(id) != nullptr) {
    is_parent_[static_cast<uint32_t>(id) - 1] = true;
  }
}

void ProcessLog::name_as_parent(uint64_t id) {
  std::lock_guard lock(slots_mutex_);
  mark_as_parent(id);
}

bool ProcessLog::end_range(ThreadLog &log, uint64_t id, uint64_t end, const Change *change) {
  ThreadLog::Busy busy(log);
  if (!busy) {
    file_.count(kInSignal);
    return false;
  }
  std::lock_guard lock(slots_mutex_);
  OpenSlot *open = open_slot(id);
  if (open == nullptr) {
    return false;
  }
  auto index = static_cast<uint32_t>(id) - 1;
  uint8_t edge = 0;
  if (log.keeps(open->event.start, end, edge, true)) {
    if (change != nullptr) {
      log.apply(open->event, *change);
    }
    if (!log.append_start_end(*open, end, edge, is_parent_[index])) {
      keep_closed(index, edge, end);
      return true;
    }
  } else {
    if (change != nullptr) {
      log.give_back(change->label.flags, change->label.payload);
    }
    log.give_back(open->event.head.flags, open->event.payload);
  }
  commit(open, {});
  free_slots_.push_back(index);
  return true;
}

// The disk is full: the longest ranges stay in their slots.
void ProcessLog::keep_closed(uint32_t index, uint8_t flags, uint64_t end) {
  uint32_t free = index;
  EventRecord &event = slot(index)->event;
  uint32_t *place = &kept_slots_[0];
  const auto kept = [this](uint32_t number) {
    return number == 0 ? 0 : length(slot(number - 1)->event.start, slot(number - 1)->event.end);
  };
  for (uint32_t &number : kept_slots_) {
    if (*place != 0 && (number == 0 || kept(number) < kept(*place))) {
      place = &number;
    }
  }
  if (*place == 0 || kept(*place) < length(event.start, end)) {
    if (*place == 0) {
      file_.undrop(RecordType::start_end);
    }
    event.end = end;
    RecordHead head = event.head;
    head.flags |= static_cast<uint8_t>(flags | kFlagClosed);
    commit(&event, head);
    free = *place - 1;
    *place = index + 1;
  }
  if (free != kNoThread) {
    slot(free)->event.end = 0;
    commit(slot(free), {});
    free_slots_.push_back(free);
  }
}

uint64_t ProcessLog::begin_of(ThreadLog &log, uint64_t id) {
  ThreadLog::Busy busy(log);
  if (!busy) {
    return 0;
  }
  std::lock_guard lock(slots_mutex_);
  const OpenSlot *open = open_slot(id);
  return open == nullptr ? 0 : open->event.start;
}

Inherited ProcessLog::inherited(ThreadLog *log) {
  Inherited result;
  try {
    for (uint32_t i = 0; log != nullptr && i < log->pieces_used_ && i <= log->piece_; ++i) {
      const EventRecord *end = i == log->piece_ ? log->top_ : log->pieces_[i].end;
      for (const EventRecord *open = log->pieces_[i].begin; open != end; ++open) {
        if (open->head.type != RecordType::none) {
          result.stack.push_back(*open);
        }
      }
    }
    std::lock_guard lock(slots_mutex_);
    for (const SlotChunk &chunk : slots_) {
      for (size_t i = 0; i < chunk.count; ++i) {
        const RecordHead &head = chunk.slots[i].event.head;
        if (head.type != RecordType::none && (head.flags & kFlagClosed) == 0) {
          result.ranges.push_back(chunk.slots[i]);
        }
      }
    }
  } catch (...) {
    // Out of memory while forking: the child starts without them.
  }
  for (const EventRecord &open : result.stack) {
    names_.hold(open.head.name);
  }
  for (const OpenSlot &open : result.ranges) {
    names_.hold(open.event.head.name);
  }
  return result;
}

void ProcessLog::adopt_ranges(const Inherited &inherited, ThreadLog *thread, uint64_t fork_ns) {
  if (thread != nullptr) {
    for (const EventRecord &open : inherited.stack) {
      thread->inherit(open, fork_ns);
    }
  }
  std::lock_guard lock(slots_mutex_);
  for (const OpenSlot &open : inherited.ranges) {
    auto index = static_cast<uint32_t>(open.id) - 1;
    while (slots_.size() <= index / kSlotsPerChunk && add_slots()) {
    }
    if (slots_.size() <= index / kSlotsPerChunk ||
        index % kSlotsPerChunk >= slots_[index / kSlotsPerChunk].count) {
      file_.drop(RecordType::start_end);
      continue;
    }
    auto turn = static_cast<uint32_t>(open.id >> 32);
    turns_[index] = std::max(turns_[index], turn);
    last_turn_ = std::max(last_turn_, turn);
    OpenSlot *mine = slot(index);
    RecordHead head = open.event.head;
    head.flags |= kFlagInherited;
    if ((head.flags & kPayloadMask) == kPayloadMask) {
      head.flags &= static_cast<uint8_t>(~kPayloadMask);  // it lies in the parent's spool
    }
    *mine = open;
    mine->event.start = fork_ns;
    mine->thread = 0;
    mine->task = 0;  // of the parent process
    commit(mine, head);
    std::erase(free_slots_, index);
  }
}

}  // namespace warplens
