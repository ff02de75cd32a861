// One tool that uses CUPTI: its callbacks, the kinds it wants, its buffers. The first is everybody who uses the calls without _v2.
#pragma once

#include <functional>

#include "fake.h"

namespace fake {

struct RequestInfo {
  size_t size;
};
struct CompleteInfo {
  size_t size;
  uint64_t thread;
  void **layouts;
  size_t layout_count;
};
using Clock = uint64_t (*)();
using Request = void (*)(uint8_t **buffer, size_t *size, size_t *most);
using Complete = void (*)(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);
using Request2 = void (*)(uint8_t **buffer, size_t *size, size_t *most, RequestInfo *info);
using Complete2 = void (*)(uint8_t *buffer, size_t size, size_t valid, CompleteInfo *info);
using Callback = void (*)(void *user, uint32_t domain, uint32_t id, const void *data);

// Memory of the tool's. It goes back when all its work is finished: one that was full by itself, one that a flush closed with a later
// flush.
struct Buffer {
  uint8_t *memory = nullptr;
  size_t size = 0, used = 0, records = 0, most = 0;
  uint64_t thread = 0;
  size_t unfinished = 0;  // records of work that still runs
  bool flushed = false;   // a flush closed it
};

// The buffers of one thread, or of all of them.
struct Slot {
  std::mutex lock;
  Buffer *open = nullptr;
  std::vector<Buffer *> full;  // and those that a flush closed: nothing is written into them any more
};

// Where the record of some work was begun when it was launched; no buffer: nobody wanted it, or it was dropped.
struct Place {
  Slot *slot = nullptr;
  Buffer *buffer = nullptr;
  size_t offset = 0;
};

struct Session {
  uint32_t index = 0;
  std::atomic<bool> subscribed{false};
  bool second = false;  // subscribed by cuptiSubscribe_v2
  bool shares = false;  // lets others subscribe as well
  std::string name;
  Callback callback = nullptr;
  void *user = nullptr;
  std::atomic<uint8_t> domains[8] = {};
  std::atomic<uint8_t> callbacks[8][1024] = {};

  std::atomic<uint8_t> kinds[kKinds] = {};
  std::atomic<uint8_t> apis[3][1024] = {};  // 0: as its kind, 1: on, 2: off
  std::atomic<Request> request{nullptr};
  std::atomic<Complete> complete{nullptr};
  std::atomic<Request2> request2{nullptr};
  std::atomic<Complete2> complete2{nullptr};
  std::atomic<Clock> clock{nullptr};
  std::atomic<uint32_t> clocks{0};  // how often one was registered
  std::atomic<size_t> dropped{0};
  std::atomic<uint32_t> episodes{0};  // how often kernels were enabled
  std::mutex slots_lock;
  std::vector<Slot *> slots;

  bool wants(uint32_t kind) const {
    return kind < kKinds && kinds[kind].load(std::memory_order_relaxed) != 0;
  }
  bool buffered() const { return request.load() != nullptr || request2.load() != nullptr; }
};

inline constexpr uint32_t kSessions = 4;
Session &session(uint32_t index);
Session *session_of(void *handle);  // null: there is no such subscriber

// Attributes that change what we do; see cuptiActivitySetAttribute.
extern std::atomic<bool> g_initializing;  // cuInit is under way
extern std::atomic<uint8_t> g_per_thread;
extern std::atomic<uint8_t> g_zeroed;
extern std::atomic<uint8_t> g_system_tids;
extern std::atomic<uint8_t> g_event_times;  // records of events say when the GPU came to them

// ---- buffers.cpp --------------------------------------------------------------------------------------------------------
// Writes a record into the buffer of this thread. Of unfinished work it is begun here, and written again when the work is done.
Place put(Session &owner, const Record &record, bool unfinished = false);
void complete_record(const Place &place, const Record &record);
void close_buffers(Session &owner, bool empty_ones);  // each thread begins a new one with its next record
void give_back_buffers(Session &owner, bool flushing);
void start_worker();
void on_worker(const std::function<void()> &what);  // on CUPTI's own thread, and waits for it

int enable_kind(Session &session, uint32_t kind, bool on);
void enable_and_dump(Session &session, uint32_t kind);
int flush(Session &session, uint32_t flag);
void retire(bool forced);
uint64_t session_now(const Session &session);

int subscribe_as_kineto();  // as another tool that stands back where it is refused

// External correlation: each thread's stacks.
int push_external(uint32_t kind, uint64_t id);
int pop_external(uint32_t kind, uint64_t *id);

// True, with a note, in a fork child or before cuInit: nothing of CUPTI may be called there.
bool out_of_bounds(const char *function);

}  // namespace fake
