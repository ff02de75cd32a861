// The slow half of a thread's log: new windows, new chunks, deep stacks, ranges closed out of order.
#include "thread_log.h"

#include <algorithm>

#include "process_log.h"

namespace warpline {
namespace {

EventRecord *records_of(ChunkHeader *chunk) {
  return reinterpret_cast<EventRecord *>(chunk + 1);
}

EventRecord *last_record(EventRecord *first, char *end) {
  return first + static_cast<size_t>(end - reinterpret_cast<char *>(first)) / sizeof(EventRecord);
}

}  // namespace

uint32_t ThreadLog::intern_new(const char *text, size_t size, uint64_t hash) {
  Busy busy(*this);
  if (!busy) {
    process_->file().count(kInSignal);
    return 0;
  }
  uint32_t id = process_->intern({text, size});
  if (id != 0) {
    cache_[hash % kCacheSize] = {hash, static_cast<uint32_t>(size), id};
  }
  return id;
}

bool ThreadLog::next_chunk() {
  size_t want = chunk_size_ == 0 ? kFirstChunk : std::min(chunk_size_ * 4, kLastChunk);
  ChunkHeader *chunk = process_->file().allocate(ChunkKind::records, sizeof(EventRecord), index_, want);
  if (chunk == nullptr) {
    return false;
  }
  chunk_size_ = want;
  cursor_ = records_of(chunk);
  chunk_end_ = reinterpret_cast<char *>(chunk) + chunk->size;
  limit_ = cursor_;
  return true;
}

// The thread's window is full: open the next one, in this chunk or a new one.
EventRecord *ThreadLog::more(RecordType type) {
  Busy busy(*this);
  if (!busy) {
    process_->file().count(kInSignal);
    return nullptr;
  }
  return more_while_busy(type);
}

EventRecord *ThreadLog::more_while_busy(RecordType type) {
  if (last_record(limit_, chunk_end_) == limit_ && !next_chunk()) {
    process_->file().drop(type);
    return nullptr;
  }
  char *window = reinterpret_cast<char *>(cursor_);
  char *end = std::min(chunk_end_, window + kWindow);
  if (chunk_size_ > kFirstChunk) {  // threads that write little should not cost memory
    SpoolFile::populate(window, static_cast<size_t>(end - window));
  }
  limit_ = std::max(last_record(cursor_, end), cursor_ + 1);
  return cursor_;
}

bool ThreadLog::append(RecordHead head, uint64_t start, uint64_t end, const Label &label) {
  if (cursor_ == limit_ && more(head.type) == nullptr) {
    return false;
  }
  write(head, start, end, label);
  return true;
}

void ThreadLog::write(RecordHead head, uint64_t start, uint64_t end, const Label &label) {
  EventRecord *record = cursor_;
  record->start = start;
  record->end = end;
  copy_details(record, label);
  commit(record, head);
  cursor_ = record + 1;
}

bool ThreadLog::append_start_end(const OpenSlot &slot, uint64_t end, bool named) {
  const EventRecord &event = slot.event;
  bool needs_origin = named || slot.thread != index_ || slot.task != 0 || slot.parent != 0;
  if (needs_origin && last_record(cursor_, chunk_end_) - cursor_ == 1) {
    // The origin must follow its record in the same chunk: leave the last free record unused.
    limit_ = cursor_;
    chunk_end_ = reinterpret_cast<char *>(cursor_);
  }
  if (cursor_ == limit_ && more_while_busy(RecordType::start_end) == nullptr) {
    return false;
  }
  write(event.head, event.start, end,
        {event.payload, event.color, event.category, event.head.name, event.head.flags});
  if (!needs_origin || (cursor_ == limit_ && more_while_busy(RecordType::origin) == nullptr)) {
    return true;
  }
  auto *origin = reinterpret_cast<OriginRecord *>(cursor_);
  origin->id = slot.id;
  origin->parent = slot.parent;
  origin->thread = slot.thread;
  origin->task = slot.task;
  commit(origin, {RecordType::origin, 0, 0, 0});
  ++cursor_;
  return true;
}

bool ThreadLog::operate(uint16_t domain, OperationAction action, uint64_t object, uint64_t value,
                        uint64_t now) {
  if (cursor_ == limit_ && more(RecordType::operation) == nullptr) {
    return false;
  }
  auto *record = reinterpret_cast<OperationRecord *>(cursor_);
  record->start = now;
  record->object = object;
  record->value = value;
  record->action = static_cast<uint32_t>(action);
  commit(record, {RecordType::operation, 0, domain, 0});
  ++cursor_;
  return true;
}

void ThreadLog::switch_task(uint32_t task, uint64_t now) {
  if (task == task_ || (cursor_ == limit_ && more(RecordType::task_switch) == nullptr)) {
    return;
  }
  auto *record = reinterpret_cast<MetaRecord *>(cursor_);
  record->start = now;
  record->id = task;
  record->thread = index_;
  commit(record, {RecordType::task_switch, 0, 0, 0});
  ++cursor_;
  task_ = task;
}

BlobLog::Blob ThreadLog::write_blob(const BlobHead &head, const void *bytes, size_t size) {
  return blobs_.write(process_->file(), index_, head, bytes, size);
}

// The range's own payload is kept behind those of its end; a number becomes a blob of its predefined type.
void ThreadLog::apply(EventRecord &open, const Change &change) {
  RecordHead head = open.head;
  if (change.name) {
    head.name = change.label.name;
  }
  if (change.category) {
    open.category = change.label.category;
  }
  if ((change.label.flags & kFlagColor) != 0) {
    open.color = change.label.color;
    head.flags |= kFlagColor;
  }
  uint8_t type = head.flags & kPayloadMask;
  if (change.has_number() && type == 0) {
    open.payload = change.label.payload;
    head.flags |= static_cast<uint8_t>(change.label.flags & kPayloadMask);
  } else if (change.has_number()) {
    uint64_t own = number_blob(type, open.payload, 0, 0);
    open.payload = number_blob(change.label.flags & kPayloadMask, change.label.payload, kBlobAtEnd, own);
    head.flags |= kPayloadMask;
  } else if ((change.label.flags & kPayloadMask) != kPayloadMask) {
    // no payload
  } else if (change.last_blob == nullptr) {  // lost
    if (type == 0) {
      open.payload = 0;
      head.flags |= kPayloadMask;
    }
  } else {
    uint64_t own = type == 0 ? 0 : number_blob(type, open.payload, 0, 0);
    std::atomic_ref(change.last_blob->next).store(own, std::memory_order_release);
    open.payload = change.label.payload;
    head.flags |= kPayloadMask;
  }
  commit(&open, head);
}

// Writes a payload of an event as a blob of its predefined type; one that is a chain of blobs already stays as it is.
uint64_t ThreadLog::number_blob(uint8_t type, uint64_t payload, uint32_t flags, uint64_t next) {
  constexpr uint64_t kPredefined[] = {0,  18, 17, 20,
                                      16, 15, 19};  // u64 i64 f64 u32 i32 f32, as NVTX numbers them
  constexpr size_t kSize[] = {0, 8, 8, 8, 4, 4, 4};
  return type == kPayloadMask ? payload
                              : write_blob({0, flags, kPredefined[type], next}, &payload, kSize[type]).offset;
}

EventRecord *ThreadLog::innermost(uint16_t domain) {
  if (unstored_ != 0) {
    return nullptr;
  }
  for (uint32_t i = pieces_used_ == 0 ? 0 : piece_ + 1; i-- > 0;) {
    EventRecord *slot = i == piece_ ? top_ : pieces_[i].end;
    while (slot != pieces_[i].begin) {
      --slot;
      if (slot->head.type != RecordType::none && slot->head.domain == domain) {
        return slot;
      }
    }
  }
  return nullptr;
}

int ThreadLog::pop(uint16_t domain, uint64_t end, const Change &change) {
  {
    Busy busy(*this);
    EventRecord *open = busy ? innermost(domain) : nullptr;
    if (open != nullptr) {
      apply(*open, change);
    } else if (change.last_blob != nullptr || change.has_number()) {
      process_->file().count(kLostPayloads);
    }
  }
  return pop(domain, end);
}

void ThreadLog::describe(RecordHead head, const MetaRecord &record) {
  Busy busy(*this);
  if (busy) {
    process_->describe(head, record);
  } else {
    process_->file().count(kInSignal);
  }
}

uint16_t ThreadLog::domain(std::string_view name) {
  Busy busy(*this);
  if (busy) {
    return process_->domain(name);
  }
  process_->file().count(kInSignal);
  return 0;
}

// The stack's piece is full: go on in the next one.
EventRecord *ThreadLog::deeper() {
  Busy busy(*this);
  if (!busy) {
    process_->file().count(kInSignal);
    return nullptr;
  }
  return deeper_while_busy();
}

EventRecord *ThreadLog::deeper_while_busy() {
  uint32_t next = pieces_used_ == 0 ? 0 : piece_ + 1;
  if (next == kPieces) {
    process_->file().drop(RecordType::range);
    return nullptr;
  }
  if (next == pieces_used_) {
    size_t want = std::min(kPage << std::min(2 * next, 20u), kLargestPiece);
    ChunkHeader *chunk = process_->file().allocate(ChunkKind::open, sizeof(EventRecord), index_, want);
    if (chunk == nullptr) {
      process_->file().drop(RecordType::range);
      return nullptr;
    }
    EventRecord *begin = records_of(chunk);
    pieces_[next] = {begin, last_record(begin, reinterpret_cast<char *>(chunk) + chunk->size)};
    ++pieces_used_;
  }
  piece_ = next;
  top_ = top_begin_ = pieces_[next].begin;
  top_end_ = pieces_[next].end;
  return top_;
}

void ThreadLog::inherit(const EventRecord &open, uint64_t fork_ns) {
  if (top_ == top_end_ && deeper_while_busy() == nullptr) {
    return;
  }
  RecordHead head = open.head;
  if ((head.flags & kPayloadMask) == kPayloadMask) {
    head.flags &= static_cast<uint8_t>(~kPayloadMask);  // it lies in the parent's spool
  }
  push(head.domain, {open.payload, open.color, open.category, head.name,
                     static_cast<uint8_t>(head.flags | kFlagInherited)});
  if (top_ != top_begin_) {
    top_[-1].start = fork_ns;
  }
}

// Drops closed slots from the top of the stack, and empty pieces with them.
void ThreadLog::trim() {
  for (;;) {
    while (top_ != top_begin_ && top_[-1].head.type == RecordType::none) {
      --top_;
      --holes_;
    }
    if (top_ != top_begin_ || piece_ == 0) {
      return;
    }
    --piece_;
    top_begin_ = pieces_[piece_].begin;
    top_ = top_end_ = pieces_[piece_].end;
  }
}

int ThreadLog::pop_slow(uint16_t domain, uint64_t end) {
  if (unstored_ != 0) {  // ranges nest: the unstored ones are the innermost
    --unstored_;
    return level(domain);
  }
  trim();
  uint32_t piece = piece_;
  EventRecord *slot = top_;
  EventRecord *begin = top_begin_;
  for (;;) {
    while (slot != begin) {
      --slot;
      if (slot->head.type != RecordType::none && slot->head.domain == domain) {
        int result = finish(slot, end);
        ++holes_;
        trim();
        return result;
      }
    }
    if (piece == 0) {
      return -1;
    }
    --piece;
    begin = pieces_[piece].begin;
    slot = pieces_[piece].end;
  }
}

int ThreadLog::level(uint16_t domain) const {
  if (domain < kLevels) {
    return static_cast<int>(level_[domain]);
  }
  int open = 0;
  for (uint32_t i = 0; i < pieces_used_ && i <= piece_; ++i) {
    const EventRecord *end = i == piece_ ? top_ : pieces_[i].end;
    for (const EventRecord *slot = pieces_[i].begin; slot != end; ++slot) {
      open += slot->head.type != RecordType::none && slot->head.domain == domain ? 1 : 0;
    }
  }
  return open;
}

}  // namespace warpline
