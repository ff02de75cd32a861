// Threads come and go, ranges cross threads, processes fork.
#include "process_log.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

namespace warpline {
namespace {

constexpr uint16_t kTooManyDomains = 0xffff;

MetaRecord about_thread(uint32_t index) {
  MetaRecord record{};
  record.thread = index;
  record.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return record;
}

}  // namespace

int ProcessLog::open(const std::string &path, std::string_view json, const ClockParams &clock) {
  clock_ = clock;
  return file_.create(path, json, clock);
}

ThreadLog *ProcessLog::enter_thread() {
  ThreadLog *log = nullptr;
  uint32_t index = 0;
  {
    std::lock_guard lock(threads_mutex_);
    index = next_thread_++;
    log = free_threads_;
    if (log != nullptr) {
      free_threads_ = log->next_free_;
    }
  }
  if (log == nullptr) {
    // Straight from the kernel: never from the program's allocator, which may be the one calling us; untouched pages are free.
    void *memory =
        mmap(nullptr, sizeof(ThreadLog), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return nullptr;
    }
    log = new (memory) ThreadLog;
    log->process_ = this;
    log->clock_ = &clock_;
  }
  log->index_ = index;
  uint64_t now = now_ns(clock_);
  MetaRecord record = about_thread(index);
  record.start = now;
  char name[17] = {};
  prctl(PR_GET_NAME, name);
  describe({RecordType::thread, 0, 0, intern(name)}, record);
  if (log->cursor_ != log->limit_) {
    auto *turn = reinterpret_cast<MetaRecord *>(log->cursor_);
    *turn = record;
    commit(turn, {RecordType::thread_switch, 0, 0, 0});
    ++log->cursor_;
  }
  if (log->pieces_used_ != 0) {
    auto *chunk = reinterpret_cast<ChunkHeader *>(log->pieces_[0].begin) - 1;
    std::atomic_ref(chunk->thread).store(index, std::memory_order_release);
  }
  return log;
}

void ProcessLog::leave_thread(ThreadLog *log) {
  // Ranges still open stay in the stack, marked as this thread's: the next owner starts a stack of its own.
  log->trim();
  if (log->top_ != log->top_begin_ || log->pieces_used_ > 1) {
    log->pieces_used_ = 0;
    log->piece_ = 0;
    log->top_ = log->top_begin_ = log->top_end_ = nullptr;
  }
  log->holes_ = log->unstored_ = log->task_ = 0;
  std::fill(std::begin(log->level_), std::end(log->level_), 0u);
  // A chunk that is used up goes to nobody; small chunks again for the next owner, who may write little.
  log->chunk_size_ = std::min(log->chunk_size_, ThreadLog::kFirstChunk);
  std::lock_guard lock(threads_mutex_);
  log->next_free_ = free_threads_;
  free_threads_ = log;
}

void ProcessLog::describe(RecordHead head, const MetaRecord &record) {
  std::lock_guard lock(describe_mutex_);
  if (head.type == RecordType::category) {
    try {
      Named &named = categories_[static_cast<uint64_t>(head.domain) << 32 | record.category];
      if (named.head.type == head.type && named.head.name == head.name) {
        return;  // some programs name their categories over and over
      }
      named = {head, record};
    } catch (...) {
      // Out of memory: a fork child will show the number instead of the name.
    }
  }
  write_description(head, record);
}

bool ProcessLog::define(ThreadLog &log, uint16_t domain, uint32_t kind, uint64_t id, std::string_view json) {
  uint32_t text = kind == 0 ? strings_.write_once(json, file_)
                            : strings_.intern(json, file_, StringTable::kLongestDefinition);
  if (text == 0) {
    file_.drop(RecordType::define);
    return false;
  }
  RecordHead head{RecordType::define, 0, domain, text};
  MetaRecord record{};
  record.start = now_ns(clock_);
  record.id = id;
  record.thread = log.index();
  std::lock_guard lock(describe_mutex_);
  if (kind != 0) {
    try {
      Named &named = definitions_[{id, kind, domain}];
      if (named.head.name == text) {
        return true;
      }
      named = {head, record};
      named.record.thread = kNoThread;  // in a child
    } catch (...) {
      // Out of memory: a fork child will not know the object.
    }
  }
  write_description(head, record);
  return true;
}

void ProcessLog::forget(uint16_t domain, uint32_t kind, uint64_t id) {
  std::lock_guard lock(describe_mutex_);
  definitions_.erase({id, kind, domain});
}

// The caller holds the lock.
void ProcessLog::write_description(RecordHead head, const MetaRecord &record) {
  if (cursor_ == end_) {
    ChunkHeader *chunk = file_.allocate(ChunkKind::records, sizeof(MetaRecord), kNoThread, next_chunk_);
    if (chunk == nullptr) {
      file_.drop(head.type);
      return;
    }
    next_chunk_ = std::min(next_chunk_ * 2, size_t{256} << 10);
    cursor_ = reinterpret_cast<MetaRecord *>(chunk + 1);
    end_ = cursor_ + (chunk->size - sizeof(ChunkHeader)) / sizeof(MetaRecord);
  }
  std::memcpy(reinterpret_cast<char *>(cursor_) + sizeof(RecordHead),
              reinterpret_cast<const char *>(&record) + sizeof(RecordHead),
              sizeof(MetaRecord) - sizeof(RecordHead));
  commit(cursor_, head);
  ++cursor_;
}

uint16_t ProcessLog::domain(std::string_view name) {
  uint16_t number = kTooManyDomains;
  try {
    std::lock_guard lock(describe_mutex_);
    std::string key(name);
    auto found = domains_.find(key);
    if (found != domains_.end()) {
      return found->second;
    }
    if (domains_.size() + 1 < kTooManyDomains) {
      number = static_cast<uint16_t>(domains_.size() + 1);
      domains_.emplace(std::move(key), number);
    }
  } catch (...) {  // out of memory: the program may cope with that, so must we
    number = kTooManyDomains;
  }
  if (number == kTooManyDomains) {
    file_.drop(RecordType::domain);
  } else {
    describe({RecordType::domain, 0, number, intern(name)}, {});
  }
  return number;
}

bool ProcessLog::add_slots() {
  if (slots_.size() == kSlotChunks) {
    return false;
  }
  ChunkHeader *chunk = file_.allocate(ChunkKind::open, sizeof(OpenSlot), kNoThread, 16384);
  if (chunk == nullptr) {
    return false;
  }
  // A chunk cut short at the end of a step offers fewer slots; numbers stay regular.
  size_t count = std::min(kSlotsPerChunk, (chunk->size - sizeof(ChunkHeader)) / sizeof(OpenSlot));
  try {
    auto first = static_cast<uint32_t>(slots_.size() * kSlotsPerChunk);
    generation_.resize(std::max(generation_.size(), first + kSlotsPerChunk));
    free_slots_.reserve(free_slots_.size() + generation_.size());
    slots_.push_back({reinterpret_cast<OpenSlot *>(chunk + 1), count});
    for (size_t i = count; i-- > 0;) {
      free_slots_.push_back(first + static_cast<uint32_t>(i));
    }
  } catch (...) {
    return false;
  }
  return true;
}

uint64_t ProcessLog::start_range(ThreadLog &log, uint16_t domain, const Label &label, uint32_t task,
                                 uint64_t parent) {
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
  uint64_t id = (static_cast<uint64_t>(++generation_[index]) << 32) | (index + 1);
  open->id = id;
  open->parent = parent;
  open->thread = log.index();
  open->task = task;
  copy_details(&open->event, label);
  open->event.start = now_ns(clock_);
  commit(open, {RecordType::start_end, label.flags, domain, label.name});
  return id;
}

bool ProcessLog::end_range(ThreadLog &log, uint64_t id, uint64_t end, const Change *change) {
  ThreadLog::Busy busy(log);
  if (!busy) {
    file_.count(kInSignal);
    return false;
  }
  std::lock_guard lock(slots_mutex_);
  auto index = static_cast<uint32_t>(id) - 1;
  if (index / kSlotsPerChunk >= slots_.size() ||
      index % kSlotsPerChunk >= slots_[index / kSlotsPerChunk].count) {
    return false;
  }
  OpenSlot *open = slot(index);
  if (open->id != id || open->event.head.type == RecordType::none) {
    return false;
  }
  if (change != nullptr) {
    log.apply(open->event, *change);
  }
  log.append_start_end(*open, end);
  commit(open, {});
  free_slots_.push_back(index);
  return true;
}

void ProcessLog::lock_for_fork() {
  slots_mutex_.lock();
  threads_mutex_.lock();
  strings_.mutex().lock();
  describe_mutex_.lock();
  file_.mutex().lock();
}

void ProcessLog::unlock_after_fork() {
  file_.mutex().unlock();
  describe_mutex_.unlock();
  strings_.mutex().unlock();
  threads_mutex_.unlock();
  slots_mutex_.unlock();
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
    for (const SlotChunk &chunk : slots_) {
      for (size_t i = 0; i < chunk.count; ++i) {
        if (chunk.slots[i].event.head.type != RecordType::none) {
          result.ranges.push_back(chunk.slots[i]);
        }
      }
    }
  } catch (...) {
    // Out of memory while forking: the child starts without them.
  }
  return result;
}

void ProcessLog::adopt_names(ProcessLog &parent) {
  strings_.adopt(parent.strings_, file_);
  domains_ = std::move(parent.domains_);
  for (const auto &[name, number] : domains_) {
    describe({RecordType::domain, 0, number, intern(name)}, {});
  }
  for (const auto &[key, named] : std::exchange(parent.categories_, {})) {
    describe(named.head, named.record);
  }
  definitions_ = std::move(parent.definitions_);
  std::lock_guard lock(describe_mutex_);
  for (const auto &[object, named] : definitions_) {
    write_description(named.head, named.record);
  }
}

void ProcessLog::adopt_ranges(ProcessLog &parent, const Inherited &inherited, ThreadLog *thread,
                              uint64_t fork_ns) {
  if (thread != nullptr) {
    for (const EventRecord &open : inherited.stack) {
      thread->inherit(open, fork_ns);
    }
  }
  std::lock_guard lock(slots_mutex_);
  generation_ = std::move(parent.generation_);
  for (const OpenSlot &open : inherited.ranges) {
    auto index = static_cast<uint32_t>(open.id) - 1;
    while (slots_.size() <= index / kSlotsPerChunk && add_slots()) {
    }
    if (slots_.size() <= index / kSlotsPerChunk ||
        index % kSlotsPerChunk >= slots_[index / kSlotsPerChunk].count) {
      file_.drop(RecordType::start_end);
      continue;
    }
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

}  // namespace warpline
