// Activity records: which kinds are wanted, the buffers they go to, and when those are given back.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "session.h"

namespace fake {
namespace {

// Where the record of some work was begun when it was launched; no buffer: nobody wanted it, or it was dropped.
struct Place {
  Slot *slot = nullptr;
  Buffer *buffer = nullptr;
  size_t offset = 0;
};

struct Pending {
  Record record;
  uint64_t start, end;  // of the GPU's clock
  size_t times;
  bool callback_clock;
  Place places[kSessions];
};

// Never destroyed: threads go on while the process exits.
std::mutex &g_pending_lock = *new std::mutex;
std::deque<Pending> &g_pending = *new std::deque<Pending>;
std::mutex &g_owned_lock = *new std::mutex;
std::set<uint8_t *> &g_owned = *new std::set<uint8_t *>;
std::recursive_mutex &g_delivery =
    *new std::recursive_mutex;  // held while a tool is called, in the trap `abba`
std::atomic<int> g_flushing{0};
std::atomic<uint64_t> g_kernels_delivered{0};
std::atomic<uint64_t> g_records{0};
thread_local Slot *t_slots[kSessions];

void reverse(Buffer &buffer) {
  std::vector<uint8_t> turned;
  for (size_t at = 0; at < buffer.used;) {
    uint32_t kind;
    std::memcpy(&kind, buffer.memory + at, sizeof(kind));
    turned.insert(turned.begin(), buffer.memory + at, buffer.memory + at + record_size(kind));
    at += record_size(kind);
  }
  std::memcpy(buffer.memory, turned.data(), turned.size());
}

void give_back(Session &owner, Buffer *buffer) {
  {
    std::lock_guard hold(g_owned_lock);
    g_owned.erase(buffer->memory);
  }
  if (trap("out-of-order") != 0) {
    reverse(*buffer);
  }
  bool abba = trap("abba") != 0;
  if (abba) {
    g_delivery.lock();
  }
  if (Complete2 complete2 = owner.complete2.load(); complete2 != nullptr) {
    CompleteInfo info{sizeof(CompleteInfo), buffer->thread, nullptr, 0};
    complete2(buffer->memory, buffer->size, buffer->used, &info);
  } else if (Complete complete = owner.complete.load(); complete != nullptr) {
    complete(nullptr, 0, buffer->memory, buffer->size, buffer->used);
  }
  if (abba) {
    g_delivery.unlock();
  }
  delete buffer;
}

// Full buffers whose work is finished; also the one that is written to, where `all`.
void give_back_finished(Session &owner, Slot &slot, bool all, bool empty_ones) {
  std::lock_guard hold(slot.lock);
  std::vector<Buffer *> finished;
  std::erase_if(slot.full, [&finished](Buffer *buffer) {
    bool is_finished = buffer->unfinished == 0;
    if (is_finished) {
      finished.push_back(buffer);
    }
    return is_finished;
  });
  if (Buffer *open = slot.open;
      all && open != nullptr && open->unfinished == 0 && (open->used != 0 || empty_ones)) {
    slot.open = nullptr;
    finished.push_back(open);
  }
  for (Buffer *buffer : finished) {
    give_back(owner, buffer);
  }
}

void check_buffer(const uint8_t *buffer, size_t size) {
  if (reinterpret_cast<uintptr_t>(buffer) % 8 != 0) {
    note("violation buffer not aligned to 8 bytes");
  }
  if (size < 1024) {
    note("violation buffer of only %zu bytes", size);
  }
  if (g_zeroed.load() != 0 && !std::all_of(buffer, buffer + size, [](uint8_t byte) { return byte == 0; })) {
    note("violation buffer is not zero, though CUPTI was told so");
  }
  std::lock_guard hold(g_owned_lock);
  if (!g_owned.insert(const_cast<uint8_t *>(buffer)).second) {
    note("violation buffer given twice");
  }
}

Buffer *take_buffer(Session &owner) {
  uint8_t *memory = nullptr;
  size_t size = 0, most = 0;
  if (Request2 request2 = owner.request2.load(); request2 != nullptr) {
    RequestInfo info{sizeof(RequestInfo)};
    request2(&memory, &size, &most, &info);
  } else if (Request request = owner.request.load(); request != nullptr) {
    request(&memory, &size, &most);
  } else {
    return nullptr;
  }
  if (memory == nullptr) {
    if (kVersion.cupti < 27) {
      note("violation null buffer: CUPTI %u crashes", kVersion.cupti);
      raise(SIGSEGV);
    }
    return nullptr;
  }
  check_buffer(memory, size);
  return new Buffer{memory, size, 0, 0, most, system_tid()};
}

Slot &slot_of(Session &owner) {
  Slot *&mine = t_slots[owner.index];
  if (g_per_thread.load() != 0 && mine != nullptr) {
    return *mine;
  }
  std::lock_guard hold(owner.slots_lock);
  if (g_per_thread.load() != 0) {
    mine = new Slot;
    owner.slots.push_back(mine);
    return *mine;
  }
  if (owner.slots.empty()) {
    owner.slots.push_back(new Slot);
  }
  return *owner.slots.front();
}

// Writes a record into the buffer of this thread. Of unfinished work it is begun here, and written again when the work is done.
Place put(Session &owner, const Record &record, bool unfinished = false) {
  if (!owner.buffered() || record.size == 0) {
    return {};
  }
  uint64_t number = g_records.fetch_add(1);
  if (uint64_t every = trap("drop"); every != 0 && number % every == every - 1) {
    owner.dropped.fetch_add(1);
    return {};
  }
  if (uint64_t every = trap("unknown-kinds");
      every != 0 && record.kind() != kUnknown && number % every == 0) {
    put(owner, Record(kUnknown));
  }
  Slot &slot = slot_of(owner);
  std::lock_guard hold(slot.lock);
  if (Buffer *open = slot.open; open != nullptr && (open->used + record.size > open->size ||
                                                    (open->most != 0 && open->records >= open->most))) {
    slot.open = nullptr;
    if (open->unfinished != 0) {
      slot.full.push_back(open);
    } else {
      give_back(owner, open);
    }
  }
  if (slot.open == nullptr) {
    slot.open = take_buffer(owner);
  }
  Buffer *buffer = slot.open;
  if (buffer == nullptr || buffer->used + record.size > buffer->size) {
    owner.dropped.fetch_add(1);
    return {};
  }
  Place place{&slot, buffer, buffer->used};
  std::memcpy(buffer->memory + buffer->used, record.bytes, record.size);
  buffer->used += record.size;
  ++buffer->records;
  buffer->unfinished += unfinished ? 1 : 0;
  return place;
}

void complete_record(Session &owner, const Place &place, const Record &record) {
  if (place.buffer != nullptr) {
    {
      std::lock_guard hold(place.slot->lock);
      std::memcpy(place.buffer->memory + place.offset, record.bytes, record.size);
      --place.buffer->unfinished;
    }
    give_back_finished(owner, *place.slot, false, false);
  }
}

uint64_t offset_of(uint64_t (*clock)()) {
  uint64_t best = UINT64_MAX, offset = 0;
  for (int attempt = 0; attempt < 8; ++attempt) {
    uint64_t before = gpu_ns();
    uint64_t there = clock();
    uint64_t after = gpu_ns();
    if (after - before < best) {
      best = after - before;
      offset = there - (before + (after - before) / 2);
    }
  }
  return offset;
}

// What CUPTI does to the times of a record when it hands it out, its own mistakes included.
void convert(Record &record, const Pending &work, uint64_t offset, bool forced, uint64_t now) {
  bool begun = work.start <= now, ended = work.end <= now;
  uint64_t start = begun ? work.start + offset : 0;
  uint64_t end = ended ? work.end + offset : 0;
  if (forced && !ended) {
    end = 0;
  }
  bool kernel = record.kind() == kKernel;
  if (kernel) {
    uint64_t number = g_kernels_delivered.fetch_add(1) + 1;
    uint64_t zero = trap("zero-times"), odd = trap("odd-times");
    uint32_t again = 0;
    for (uint32_t index = 0; index < kSessions; ++index) {
      uint32_t clocks = session(index).clocks.load();
      again = std::max(again, clocks > 1 ? clocks - 1 : 0);
    }
    static std::atomic<uint32_t> spoiled{0};
    if (zero != 0 && number % zero == 0) {
      start = end = 0;
    } else if (odd != 0 && number % odd == 0) {
      std::swap(start, end);
    } else if (spoiled.load() < again * (again + 1) / 2) {
      spoiled.fetch_add(1);  // round k of registering a clock loses k records
      start += 100'000'000'000'000u;
      end += 100'000'000'000'000u;
    }
    record.put<uint64_t>(32, end);  // completed
  }
  record.put<uint64_t>(work.times, start);
  if (work.times == 16 || work.times == 8) {
    record.put<uint64_t>(work.times + 8, end);
  }
}

void *work_on(void *) {
  for (;;) {
    usleep(10'000);
    retire(false);
  }
  return nullptr;
}

void start_worker() {
  static std::atomic<bool> started{false};
  if (trap("no-worker") != 0 || started.exchange(true)) {
    return;
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, work_on, nullptr) == 0) {
    pthread_detach(thread);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void flush_overhead(Session &owner, uint64_t start) {
  if (!owner.wants(kOverhead)) {
    return;
  }
  Record record(kOverhead);
  record.put<uint32_t>(4, 1u << 16);
  record.put<uint32_t>(8, 2);
  record.put<uint32_t>(12, static_cast<uint32_t>(getpid()));
  record.put<uint32_t>(16, system_tid());
  record.put<uint64_t>(24, start);
  record.put<uint64_t>(32, session_now(owner));
  put(owner, record);
}

}  // namespace

std::atomic<bool> g_initializing{false};
std::atomic<uint8_t> g_per_thread{0};
std::atomic<uint8_t> g_zeroed{0};
std::atomic<uint8_t> g_system_tids{0};
std::atomic<uint8_t> g_event_times{0};

__attribute__((constructor)) static void defaults() {
  g_per_thread = kVersion.toolkit >= 1300 ? 1 : 0;
}

Session &session(uint32_t index) {
  static Session *all = [] {
    auto *made = new Session[kSessions];
    for (uint32_t number = 0; number < kSessions; ++number) {
      made[number].index = number;
    }
    return made;
  }();
  return all[index];
}

uint64_t session_now(const Session &owner) {
  Clock clock = owner.clock.load();
  return clock != nullptr ? clock() : realtime_ns();
}

uint64_t cupti_now() {
  for (uint32_t index = 0; index < kSessions; ++index) {
    if (Clock clock = session(index).clock.load(); clock != nullptr) {
      return clock();
    }
  }
  return realtime_ns();
}

bool anybody_wants(uint32_t kind) {
  for (uint32_t index = 0; index < kSessions; ++index) {
    if (session(index).wants(kind)) {
      return true;
    }
  }
  return false;
}

// With the kind of whole graphs, CUPTI gives no records of their kernels.
bool graph_as_a_whole() {
  return anybody_wants(kGraphTrace);
}

void deliver(const Record &record) {
  for (uint32_t index = 0; index < kSessions; ++index) {
    if (session(index).wants(record.kind())) {
      put(session(index), record);
    }
  }
}

void deliver_api(const Record &record, uint32_t domain, uint32_t cbid) {
  for (uint32_t index = 0; index < kSessions; ++index) {
    Session &owner = session(index);
    uint8_t own = owner.apis[domain][cbid].load(std::memory_order_relaxed);
    if (own == 1 || (own == 0 && owner.wants(record.kind()))) {
      put(owner, record);
    }
  }
}

void deliver_later(const Record &record, uint64_t start, uint64_t end, Context *context, size_t times) {
  // Older ones fix the clock of a context's records when it is made; 13.3U3 and later use what is registered now.
  bool callback = kVersion.cupti >= 130303 || context->clock_callback;
  Pending work{record, start, end, times, callback && trap("wrong-clock") == 0, {}};
  bool wanted = false;
  for (uint32_t index = 0; index < kSessions; ++index) {
    if (session(index).wants(record.kind())) {
      work.places[index] = put(session(index), record, true);
      wanted = wanted || work.places[index].buffer != nullptr;
    }
  }
  if (wanted) {
    std::lock_guard hold(g_pending_lock);
    g_pending.push_back(work);
  }
}

void retire(bool forced) {
  // A flush has to wait for what CUPTI's own thread is about to put into a buffer.
  static std::mutex &one = *new std::mutex;
  std::lock_guard alone(one);
  std::vector<Pending> done;
  uint64_t now = gpu_ns();
  {
    std::lock_guard hold(g_pending_lock);
    std::deque<Pending> kept;
    for (Pending &work : g_pending) {
      if (forced || work.end <= now) {
        done.push_back(work);
      } else {
        kept.push_back(work);
      }
    }
    g_pending.swap(kept);
  }
  if (done.empty()) {
    return;
  }
  uint64_t callback = offset_of(cupti_now), real = offset_of(realtime_ns);
  uint64_t shift = trap("clock-off");
  static auto &again = *new std::vector<std::pair<Session *, Record>>;
  std::vector<std::pair<Session *, Record>> repeated;
  repeated.swap(again);
  for (auto &[owner, record] : repeated) {
    put(*owner, record);
  }
  for (Pending &work : done) {
    convert(work.record, work, (work.callback_clock ? callback : real) + shift, forced, now);
    for (uint32_t index = 0; index < kSessions; ++index) {
      complete_record(session(index), work.places[index], work.record);
      if (work.places[index].buffer != nullptr && trap("redeliver") != 0) {
        again.emplace_back(&session(index), work.record);
      }
    }
  }
}

int enable_kind(Session &owner, uint32_t kind, bool on) {
  if (kind == 0 || kind >= kKinds) {
    return 21;
  }
  if (on && record_size(kind) == 0) {
    return kind > kJit ? 21 : 27;
  }
  if (on && kind == kKernel && owner.kinds[kind].load() == 0) {
    owner.episodes.fetch_add(1);
  }
  owner.kinds[kind].store(on ? 1 : 0);
  if (on) {
    start_worker();
  }
  return 0;
}

int flush(Session &owner, uint32_t flag) {
  uint64_t hang = trap("hang-flush");  // 1: the forced flush only, 2: every one
  if (hang == 2 || (hang == 1 && (flag & 1) != 0) || (g_forked.load() && trap("fork-hang") != 0)) {
    note("flush hangs flag=%u", flag);
    for (;;) {
      pause();
    }
  }
  if (g_initializing.load()) {
    note("violation flush while cuInit runs");
  }
  if (uint64_t slow = trap("slow-flush"); slow != 0) {
    usleep(static_cast<useconds_t>(slow * 1000));
  }
  if (g_flushing.fetch_add(1) != 0) {
    note("violation FlushAll in several threads at once");
    if (trap("flush-deadlock") != 0) {
      for (;;) {
        pause();
      }
    }
  }
  uint64_t start = session_now(owner);
  retire((flag & 1) != 0);
  std::vector<Slot *> slots;
  {
    std::lock_guard hold(owner.slots_lock);
    slots = owner.slots;
  }
  for (Slot *slot : slots) {
    give_back_finished(owner, *slot, true, (flag & 1) != 0);
  }
  flush_overhead(owner, start);
  g_flushing.fetch_sub(1);
  return 0;
}

}  // namespace fake

FAKE_EXPORT int cuptiActivityGetNumDroppedRecords(void *, uint32_t, size_t *dropped) {
  bool abba = fake::trap("abba") != 0;
  if (abba) {
    fake::g_delivery.lock();
  }
  *dropped = fake::session(0).dropped.exchange(0);
  if (abba) {
    fake::g_delivery.unlock();
  }
  return 0;
}
