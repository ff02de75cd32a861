// Activity records: which kinds are wanted, and when the work that they are about is done.
#include <unistd.h>

#include <algorithm>

#include "session.h"

namespace fake {
namespace {

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
std::atomic<int> g_flushing{0};
std::atomic<uint64_t> g_kernels_delivered{0};

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
    uint8_t own = trap("no-choice") != 0 ? 0 : owner.apis[domain][cbid].load(std::memory_order_relaxed);
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
      complete_record(work.places[index], work.record);
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
  if (kind == kDriver || kind == kRuntime) {  // the kind overrides earlier settings of single functions
    for (auto &choice : owner.apis[kind == kDriver ? kDriverApi : kRuntimeApi]) {
      choice.store(0);
    }
  }
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
  if (trap("tell-flushes") != 0) {
    note("flush %u", flag);
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
  on_worker([&owner, flag, start] {
    retire((flag & 1) != 0);
    close_buffers(owner, (flag & 1) != 0);
    give_back_buffers(owner, true);
    flush_overhead(owner, start);  // the next flush has it
  });
  g_flushing.fetch_sub(1);
  return 0;
}

}  // namespace fake
