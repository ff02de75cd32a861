// The buffers of tools: when the fake writes into them, closes them and gives them back, on a thread of the fake CUPTI.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <set>

#include "session.h"

namespace fake {
namespace {

// Never destroyed: threads go on while the process exits.
std::mutex &g_owned_lock = *new std::mutex;
std::set<uint8_t *> &g_owned = *new std::set<uint8_t *>;
std::recursive_mutex &g_delivery =
    *new std::recursive_mutex;  // held while a tool is called, in the trap `abba`
std::atomic<uint64_t> g_records{0};
thread_local Slot *t_slots[kSessions];

struct Job {
  const std::function<void()> &what;
  bool done = false;
};
struct Worker {
  std::mutex lock;
  std::condition_variable wake, done;
  std::deque<Job *> jobs;
  bool runs = false;
  bool has_full = false;
};
Worker &g_worker = *new Worker;

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

void check_buffer(const uint8_t *buffer, size_t size) {
  if (reinterpret_cast<uintptr_t>(buffer) % 8 != 0) {
    note("violation buffer not aligned to 8 bytes");
  }
  if (size < 1024) {
    note("violation buffer of only %zu bytes", size);
  }
  if (g_zeroed.load() != 0 && !std::all_of(buffer, buffer + size, [](uint8_t byte) { return byte == 0; })) {
    note("violation buffer is not zero, although the tool declared it zeroed");
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

std::vector<Slot *> slots_of(Session &owner) {
  std::lock_guard hold(owner.slots_lock);
  return owner.slots;
}

void *work_on(void *) {
  Worker &worker = g_worker;
  std::unique_lock hold(worker.lock);
  for (;;) {
    worker.wake.wait_for(hold, std::chrono::milliseconds(10),
                         [&worker] { return !worker.jobs.empty() || worker.has_full; });
    worker.has_full = false;
    if (!worker.jobs.empty()) {
      Job *job = worker.jobs.front();
      worker.jobs.pop_front();
      hold.unlock();
      job->what();
      hold.lock();
      job->done = true;
      worker.done.notify_all();
      continue;
    }
    hold.unlock();
    retire(false);
    for (uint32_t index = 0; index < kSessions; ++index) {
      give_back_buffers(session(index), false);
    }
    hold.lock();
  }
  return nullptr;
}

}  // namespace

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
    std::lock_guard hold(g_worker.lock);
    g_worker.runs = true;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void on_worker(const std::function<void()> &what) {
  std::unique_lock hold(g_worker.lock);
  if (!g_worker.runs) {
    hold.unlock();
    return what();
  }
  Job job{what};
  g_worker.jobs.push_back(&job);
  g_worker.wake.notify_one();
  g_worker.done.wait(hold, [&job] { return job.done; });
}

Place put(Session &owner, const Record &record, bool unfinished) {
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
    slot.full.push_back(open);
    std::lock_guard hold_worker(g_worker.lock);
    g_worker.has_full = true;
    g_worker.wake.notify_one();
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

void complete_record(const Place &place, const Record &record) {
  if (place.buffer != nullptr) {
    std::lock_guard hold(place.slot->lock);
    std::memcpy(place.buffer->memory + place.offset, record.bytes, record.size);
    --place.buffer->unfinished;
  }
}

void close_buffers(Session &owner, bool empty_ones) {
  for (Slot *slot : slots_of(owner)) {
    std::lock_guard hold(slot->lock);
    if (Buffer *open = slot->open; open != nullptr && (open->used != 0 || empty_ones)) {
      slot->open = nullptr;
      open->flushed = true;
      slot->full.push_back(open);
    }
  }
}

void give_back_buffers(Session &owner, bool flushing) {
  for (Slot *slot : slots_of(owner)) {
    std::vector<Buffer *> finished;
    {
      std::lock_guard hold(slot->lock);
      std::erase_if(slot->full, [&finished, flushing](Buffer *buffer) {
        bool goes = buffer->unfinished == 0 && (flushing || !buffer->flushed);
        if (goes) {
          finished.push_back(buffer);
        }
        return goes;
      });
    }
    for (Buffer *buffer : finished) {
      give_back(owner, buffer);
    }
  }
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
