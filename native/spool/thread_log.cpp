// The slow half of a thread's log: new windows, new chunks, deep stacks, ranges closed out of order.
#include "thread_log.h"

#include <algorithm>

#include "process_log.h"
#include "window.h"

namespace warplens {
namespace {

EventRecord *records_of(const Chunk &chunk) {
  return reinterpret_cast<EventRecord *>(chunk.contents());
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
  uint32_t id = process_->passing({text, size});
  if (id != 0) {
    cache_[hash % kCacheSize] = {hash, static_cast<uint32_t>(size), id};
  }
  return id;
}

bool ThreadLog::next_chunk() {
  SpoolFile &file = process_->file();
  size_t want = chunk_size_ == 0 ? kFirstChunk : std::min(chunk_size_ * 4, kLastChunk);
  open_chunk(nullptr, nullptr);  // the old one may be somebody else's at once
  Chunk chunk = ring_.next(file, ChunkKind::records, sizeof(EventRecord), index_, 0, want);
  if (!chunk) {
    return false;
  }
  chunk_size_ = want;
  open_chunk(records_of(chunk), chunk.end());
  if (file.keep_ns() != 0) {
    introduce();
  }
  return true;
}

void ThreadLog::open_chunk(EventRecord *cursor, char *end) {
  limit_ = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  cursor_ = cursor;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  limit_ = cursor;
  window_ = reinterpret_cast<char *>(cursor);
  chunk_end_ = end;
}

// A flight recorder writes chunks anew: each has to say by itself whose it is.
void ThreadLog::introduce() {
  auto *record = reinterpret_cast<MetaRecord *>(cursor_);
  *record = about_;
  commit(record++, {RecordType::thread, 0, 0, about_name_});
  if (written_task_ != 0) {
    *record = about_;
    record->id = written_task_;
    commit(record++, {RecordType::task_switch, 0, 0, 0});
  }
  cursor_ = reinterpret_cast<EventRecord *>(record);
  limit_ = std::max(limit_, cursor_);
}

void ThreadLog::take_over(const MetaRecord &about, uint32_t name) {
  index_ = about.thread;
  about_ = about;
  about_name_ = name;
  bool recorder = process_->file().keep_ns() != 0;
  if (last_record(cursor_, chunk_end_) - cursor_ < (recorder ? 3 : 1)) {
    // Nothing is left of the other's chunk. A flight recorder keeps nothing about threads but what their chunks say.
    if (recorder && !next_chunk()) {
      process_->file().drop(RecordType::thread);
    }
    return;
  }
  auto *turn = reinterpret_cast<MetaRecord *>(cursor_);
  *turn = about;
  commit(turn, {RecordType::thread_switch, 0, 0, 0});
  ++cursor_;
  limit_ = std::max(limit_, cursor_);
  if (recorder) {
    introduce();
  }
}

// The place of the next record, or of several in one chunk; null when there is no space.
EventRecord *ThreadLog::take(RecordType type, bool busy, size_t count) {
  for (;;) {
    EventRecord *record = cursor_;
    std::atomic_signal_fence(std::memory_order_acquire);
    if (limit_ - record >= static_cast<ptrdiff_t>(count)) {
      if (advance(cursor_, record, record + count)) {
        return record;
      }
    } else if (!(busy ? more_while_busy(type, count) : more(type, count))) {
      return nullptr;
    }
  }
}

// The thread's window is full: open the next one, in this chunk or a new one.
bool ThreadLog::more(RecordType type, size_t count) {
  Busy busy(*this);
  if (!busy) {
    process_->file().count(kInSignal);
    return false;
  }
  return more_while_busy(type, count);
}

bool ThreadLog::more_while_busy(RecordType type, size_t count) {
  if (static_cast<size_t>(last_record(cursor_, chunk_end_) - cursor_) < count && !next_chunk()) {
    process_->file().drop(type);
    return false;
  }
  char *window = reinterpret_cast<char *>(cursor_);
  char *end = std::min(chunk_end_, window + kWindow);
  if (chunk_size_ > kFirstChunk) {  // threads that write little should not cost memory
    process_->file().let_go(window_, window);
    SpoolFile::populate(window, static_cast<size_t>(end - window));
  }
  window_ = window;
  limit_ = last_record(reinterpret_cast<EventRecord *>(window), end);
  return true;
}

// The gate moved, or is closed, or the range began before the window: the times decide.
bool ThreadLog::keeps_at_edge(uint64_t start, uint64_t end, uint8_t &flags, bool busy) {
  const ControlPage *control = process_->control();
  if (control == nullptr) {
    return true;
  }
  if (notice_opening(busy) && start >= window_begin_) {
    return true;
  }
  bool clipped = false;
  if (window_around(control, start, end, &clipped) == 0) {
    return false;
  }
  if (clipped) {
    flags |= kFlagClipped;
  }
  if (task_ != written_task_) {
    write_task(end, busy);
  }
  return true;
}

// Remembers the window that is open now, if one is.
bool ThreadLog::notice_opening(bool busy) {
  ControlPage *control = process_->control();
  uint32_t gate = control == nullptr ? 0 : settle_windows(control);
  if (gate % 2 == 0 || gate / 2 >= kWindows) {
    return false;
  }
  if (gate == open_gate_) {
    return true;
  }
  if (task_ != written_task_ && !write_task(now_ns(*clock_), busy)) {
    return false;  // or records would seem to be another task's
  }
  window_begin_ = windows_of(control)[gate / 2].open_ns.load(std::memory_order_relaxed);
  std::atomic_signal_fence(
      std::memory_order_release);  // a handler between the two finds the old gate, which is shut
  open_gate_ = gate;
  return true;
}

void ThreadLog::finish_slowly(const EventRecord &open, uint64_t end) {
  RecordHead head = open.head;
  if (keeps(open.start, end, head.flags)) {
    if (!append(head, open.start, end, {open.payload, open.color, open.category, head.name, head.flags})) {
      keep_closed(head, open, end);
    }
  } else if ((head.flags & kPayloadMask) == kPayloadMask) {
    if (Busy busy(*this); busy) {
      give_back(head.flags, open.payload);
    }
  }
}

// The disk is full. The program's outer ranges explain all others: the longest ones stay where the open ones are, which has space.
void ThreadLog::keep_closed(RecordHead head, const EventRecord &range, uint64_t end) {
  Busy busy(*this);
  if (!busy || kept_ == nullptr) {
    return;
  }
  EventRecord *place = kept_;
  for (EventRecord *slot = kept_; slot != kept_ + kKept; ++slot) {
    if (length(slot->start, slot->end) < length(place->start, place->end)) {
      place = slot;
    }
  }
  bool taken = place->head.type != RecordType::none;
  if (taken && length(range.start, end) <= length(place->start, place->end)) {
    return;  // this is the one that is lost
  }
  if (!taken) {
    process_->file().undrop(head.type);
  }
  keeps_closed_ = true;
  commit(place, {});
  std::atomic_signal_fence(std::memory_order_seq_cst);
  place->start = range.start;
  place->end = end;
  copy_details(place, range);
  head.flags |= kFlagClosed;
  commit(place, head);
}

bool ThreadLog::append(RecordHead head, uint64_t start, uint64_t end, const Label &label) {
  EventRecord *record = take(head.type);
  if (record == nullptr) {
    return false;
  }
  record->start = start;
  record->end = end;
  copy_details(record, label);
  commit(record, head);
  return true;
}

bool ThreadLog::append_start_end(const OpenSlot &slot, uint64_t end, uint8_t flags, bool named) {
  const EventRecord &event = slot.event;
  bool needs_origin = named || slot.thread != index_ || slot.task != 0 || slot.parent != 0;
  EventRecord *record = take(RecordType::start_end, true, needs_origin ? 2 : 1);  // both in one chunk
  if (record == nullptr) {
    return false;
  }
  RecordHead head = event.head;
  head.flags |= flags;
  record->start = event.start;
  record->end = end;
  copy_details(record, event);
  commit(record, head);
  if (needs_origin) {
    auto *origin = reinterpret_cast<OriginRecord *>(record + 1);
    origin->id = slot.id;
    origin->parent = slot.parent;
    origin->thread = slot.thread;
    origin->task = slot.task;
    commit(origin, {RecordType::origin, 0, 0, 0});
  }
  return true;
}

bool ThreadLog::operate(uint16_t domain, OperationAction action, uint64_t object, uint64_t value,
                        uint64_t now) {
  if (!records(now)) {
    return true;
  }
  auto *record = reinterpret_cast<OperationRecord *>(take(RecordType::operation));
  if (record == nullptr) {
    return false;
  }
  record->start = now;
  record->object = object;
  record->value = value;
  record->action = static_cast<uint32_t>(action);
  commit(record, {RecordType::operation, 0, domain, 0});
  return true;
}

void ThreadLog::switch_task(uint32_t task, uint64_t now) {
  task_ = task;
  if (task == written_task_) {
    return;
  }
  if (open_since(now)) {
    write_task(now, false);
  } else if (process_->control() != nullptr) {
    notice_opening(false);
  }
}

bool ThreadLog::write_task(uint64_t now, bool busy) {
  auto *record = reinterpret_cast<MetaRecord *>(take(RecordType::task_switch, busy));
  if (record == nullptr) {
    return false;
  }
  record->start = now;
  record->id = task_;
  record->thread = index_;
  commit(record, {RecordType::task_switch, 0, 0, 0});
  written_task_ = task_;
  return true;
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

const EventRecord *ThreadLog::innermost(uint16_t domain) const {
  if (unstored_ != 0) {
    return nullptr;
  }
  for (uint32_t i = pieces_used_ == 0 ? 0 : piece_ + 1; i-- > 0;) {
    const EventRecord *slot = i == piece_ ? top_ : pieces_[i].end;
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
    auto *open = busy ? const_cast<EventRecord *>(innermost(domain)) : nullptr;
    uint8_t edge = 0;
    if (open != nullptr && !keeps(open->start, end, edge, true)) {
      give_back(change.label.flags, change.label.payload);
    } else if (open != nullptr) {
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

// The stack's piece is full: the first slot of the next one.
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
    Chunk chunk = process_->file().allocate_lasting(ChunkKind::open, sizeof(EventRecord), index_, want);
    if (!chunk) {
      process_->file().drop(RecordType::range);
      return nullptr;
    }
    EventRecord *begin = records_of(chunk);
    EventRecord *end = last_record(begin, chunk.end());
    if (next == 0) {
      kept_ = end -= kKept;
      keeps_closed_ = false;
    }
    pieces_[next] = {begin, end};
    ++pieces_used_;
  }
  top_end_ = nullptr;
  EventRecord *slot = pieces_[next].begin;
  enter_piece(next, slot + 1);
  return slot;
}

// The caller has set top_end_ to null, and holds Busy: until the end, a handler's pushes are only counted. A range that is the
// first in its piece is closed by pop_slow, which leaves the piece.
void ThreadLog::enter_piece(uint32_t piece, EventRecord *top) {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  piece_ = piece;
  top_begin_ = pieces_[piece].begin + (piece == 0 ? 0 : 1);
  top_ = top;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  top_end_ = pieces_[piece].end;
}

void ThreadLog::inherit(const EventRecord &open, uint64_t fork_ns) {
  EventRecord *slot = top_ < top_end_ ? top_++ : deeper_while_busy();
  if (slot == nullptr) {
    return;
  }
  RecordHead head = open.head;
  if ((head.flags & kPayloadMask) == kPayloadMask) {
    head.flags &= static_cast<uint8_t>(~kPayloadMask);  // it lies in the parent's spool
  }
  head.flags |= kFlagInherited;
  copy_details(slot, open);
  slot->start = fork_ns;
  commit(slot, head);
  if (head.domain < kLevels) {
    ++level_[head.domain];
  }
}

// Drops closed slots from the top of the stack, and empty pieces with them.
void ThreadLog::trim() {
  if (pieces_used_ == 0) {
    return;
  }
  Busy busy(*this);
  top_end_ = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  uint32_t piece = piece_;
  EventRecord *top = top_;
  for (;;) {
    // Without a hole it is one that a push is about to fill, which a signal interrupted.
    while (holes_ != 0 && top != pieces_[piece].begin && top[-1].head.type == RecordType::none) {
      --top;
      --holes_;
    }
    if (top != pieces_[piece].begin || piece == 0) {
      break;
    }
    top = pieces_[--piece].end;
  }
  enter_piece(piece, top);
}

int ThreadLog::pop_slow(uint16_t domain, uint64_t end) {
  if (unstored_ != 0) {  // ranges nest: the unstored ones are the innermost
    --unstored_;
    return level(domain);
  }
  EventRecord *slot = find_open([domain](const EventRecord &open) {
    return open.head.type != RecordType::none && open.head.domain == domain;
  });
  return slot != nullptr ? close_within(slot, end) : -1;
}

bool ThreadLog::pop_op_slow(uint64_t address, uint64_t end, uint64_t sequence) {
  if (unstored_ != 0) {
    --unstored_;
    return true;
  }
  EventRecord *slot = find_open([address](const EventRecord &open) { return is_op(open, address); });
  if (slot == nullptr) {
    return false;
  }
  slot->payload = sequence;
  close_within(slot, end);
  return true;
}

// The innermost open range that is wanted; null where there is none.
template <typename Wanted>
EventRecord *ThreadLog::find_open(const Wanted &wanted) {
  trim();
  uint32_t piece = piece_;
  EventRecord *slot = top_;
  EventRecord *begin = pieces_used_ == 0 ? top_ : pieces_[piece].begin;
  for (;;) {
    while (slot != begin) {
      --slot;
      if (wanted(*slot)) {
        return slot;
      }
    }
    if (piece == 0) {
      return nullptr;
    }
    --piece;
    begin = pieces_[piece].begin;
    slot = pieces_[piece].end;
  }
}

// Closes a range that others may be open in.
int ThreadLog::close_within(EventRecord *slot, uint64_t end) {
  int result = finish(slot, end);
  ++holes_;
  trim();
  return result;
}

int ThreadLog::level(uint16_t domain) const {
  if (domain < kLevels) {
    return static_cast<int>(level_[domain]);
  }
  int open = 0;
  each_open([&](const RecordHead &head) { open += head.domain == domain ? 1 : 0; });
  return open;
}

}  // namespace warplens
