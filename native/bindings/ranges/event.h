// One event: its arguments as Python gave them, and the NVTX attributes made from them.
#pragma once

#include <new>

#include "bindings/domain.h"
#include "bindings/listener.h"
#include "bindings/payloads/reading.h"
#include "bindings/values/compat.h"
#include "bindings/values/string_cache.h"
#include "tasks.h"

namespace warplens::binding {

struct Event {
  nvtxEventAttributes_t attributes;  // valid while `state` is the listener's
  std::atomic<int32_t> state;        // 0: not prepared
  uint32_t argb;
  bool
      live;  // read anew at each event: the payload; without the GIL also a text, which may be freed meanwhile
#if defined(Py_GIL_DISABLED)
  Mutex mutex;       // of what follows, `state`, `live` and `attributes`, for those who change them
  uint32_t changes;  // how often what it says was changed
  std::atomic<uint32_t> serial;  // of `attributes`: odd while they are written
#endif
  Domain *domain;      // immortal
  PyObject *message;   // exact str, or null
  PyObject *color;     // as given, or null
  PyObject *category;  // exact str or int, or null
  PyObject *payload;   // as given, or null
  PyObject *holder;    // bytes that attributes.message points into, or null
};

// The five arguments of annotate and of the range functions; borrowed, null where not given.
struct Arguments {
  PyObject *message = nullptr;
  PyObject *color = nullptr;
  PyObject *domain = nullptr;
  PyObject *category = nullptr;
  PyObject *payload = nullptr;
};

// Fills an event whose memory is raw; the message is an exact str or null.
inline void init_event(Event *event, Domain *domain, PyObject *message) {
  new (&event->state) std::atomic<int32_t>(0);
  event->argb = 0x0000FF;
  event->live = false;
#if defined(Py_GIL_DISABLED)
  new (&event->mutex) Mutex;
  event->changes = 0;
  new (&event->serial) std::atomic<uint32_t>(0);
#endif
  event->domain = domain;
  use(domain, 1);
  event->message = Py_XNewRef(message);
  event->color = event->category = event->payload = event->holder = nullptr;
}

// Checks and keeps arguments in an event that init_event() has filled. False with TypeError; the event stays whole.
bool set_message(Event *event, PyObject *message);
bool set_color(Event *event, PyObject *color);
bool set_category(Event *event, PyObject *category);
void set_payload(Event *event, PyObject *payload);
bool set_domain(Event *event, PyObject *domain);
void move_event(Event *event, Domain *domain);
bool set_arguments(Event *event, const Arguments &arguments);

// What an event says now, held.
struct Said {
  explicit Said(Event *event) {
#if defined(Py_GIL_DISABLED)
    const Guard lock(event->mutex);
    changes = event->changes;
#endif
    domain = event->domain;
    argb = event->argb;
    message = Py_XNewRef(event->message);
    color = Py_XNewRef(event->color);
    category = Py_XNewRef(event->category);
    payload = Py_XNewRef(event->payload);
  }
  ~Said() {
    Py_XDECREF(message);
    Py_XDECREF(color);
    Py_XDECREF(category);
    Py_XDECREF(payload);
  }
  Said(const Said &) = delete;
  Said &operator=(const Said &) = delete;

  Domain *domain;
  PyObject *message, *color, *category, *payload;
  uint32_t argb;
  uint32_t changes = 0;
};

void clear_event(Event *event);

// The number of its category, 0 where it has none.
uint32_t category_number(Event *event, int32_t state);

// For tp_traverse and tp_clear: payloads are the only thing of an event that can be part of a cycle.
#define WARPLENS_VISIT_EVENT(event) Py_VISIT((event).payload)

// An object whose event holds one registers with the collector only then: most never do. Once: two threads may come here.
inline void track_payload(PyObject *owner, Event *event) {
  if (event->payload == nullptr || PyObject_GC_IsTracked(owner)) {
    return;
  }
  bool in_cycles = false;
  {
#if defined(Py_GIL_DISABLED)
    const Guard lock(event->mutex);
#endif
    in_cycles = event->payload != nullptr && PyObject_IS_GC(event->payload);
  }
  WARPLENS_LOCK(owner);
  if (in_cycles && !PyObject_GC_IsTracked(owner)) {
    PyObject_GC_Track(owner);
  }
  WARPLENS_UNLOCK();
}

// One event for the length of a call.
class Transient {
 public:
  Transient() { init_event(&event, g_default_domain, nullptr); }
  ~Transient() { clear_event(&event); }
  Transient(const Transient &) = delete;
  Transient &operator=(const Transient &) = delete;
  Event event;
};

// Makes `attributes` for the listener `state` > 0. Never fails: what cannot be sent is left out, with a warning.
void prepare(Event *event, int32_t state);

// The common case of `with annotate("constant")`, where a fresh object is prepared for every block: no call needed.
inline bool prepare_simple([[maybe_unused]] Event *event, [[maybe_unused]] int32_t state) {
#if !defined(Py_GIL_DISABLED)
  Domain *domain = event->domain;
  if (event->message == nullptr || event->category != nullptr || event->payload != nullptr ||
      domain->state.load(std::memory_order_relaxed) != state) {
    return false;
  }
  const StringSlot &slot = string_slot(domain, event->message);
  if (slot.text != event->message || slot.domain != domain || slot.handle == nullptr) {
    return false;
  }
  nvtxEventAttributes_t &out = event->attributes;
  out.version = NVTX_VERSION;
  out.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  out.category = 0;
  out.colorType = NVTX_COLOR_ARGB;
  out.color = event->argb;
  out.payloadType = NVTX_PAYLOAD_UNKNOWN;
  out.reserved0 = 0;
  out.payload.ullValue = 0;
  out.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  out.message.registered = slot.handle;
  event->state.store(state, std::memory_order_relaxed);
  return true;
#else
  return false;
#endif
}

inline void ensure_prepared(Event *event, int32_t state) {
  if (event->state.load(std::memory_order_acquire) != state && !prepare_simple(event, state)) [[unlikely]] {
    prepare(event, state);
  }
}

// Attributes for this one event, with its payload as it is now.
void load(Event *event, int32_t state, nvtxEventAttributes_t *attributes, Reading *reading);

template <typename Call>
[[gnu::noinline]] auto call_loaded(Event *event, int32_t state, Call call) {
  const KeptError error;  // the last to go: freeing what was read may run Python
  nvtxEventAttributes_t attributes;
  Reading reading;
  load(event, state, &attributes, &reading);
  return call(event->domain->handle, &attributes);
}

#if defined(Py_GIL_DISABLED)
// A copy of the attributes, where they are ready for `state` and stay so meanwhile, and nothing has to be read anew: other threads may
// change the event while a tool reads what it was given.
inline bool copy_ready(Event *event, int32_t state, nvtxEventAttributes_t *out) {
  using Word [[gnu::may_alias]] = uint64_t;
  static_assert(sizeof(*out) % sizeof(Word) == 0);
  const uint32_t serial = event->serial.load(std::memory_order_acquire);
  if (serial % 2 != 0 || __atomic_load_n(&event->live, __ATOMIC_RELAXED) ||
      event->state.load(std::memory_order_acquire) != state) {
    return false;
  }
  for (size_t i = 0; i < sizeof(*out) / sizeof(Word); ++i) {
    reinterpret_cast<Word *>(out)[i] =
        __atomic_load_n(&reinterpret_cast<const Word *>(&event->attributes)[i], __ATOMIC_ACQUIRE);
  }
  return event->serial.load(std::memory_order_relaxed) == serial;
}
#endif

// The one place where events begin: `call` gets NVTX's domain and attributes. `state` is what listener() said, and > 0.
template <typename Call>
inline auto send(Event *event, int32_t state, Call call) {
  ensure_prepared(event, state);
#if defined(Py_GIL_DISABLED)
  nvtxEventAttributes_t ready;
  if (!copy_ready(event, state, &ready)) [[unlikely]] {
    return call_loaded(event, state, call);
  }
  return call(event->domain->handle, &ready);
#else
  if (event->live) [[unlikely]] {
    return call_loaded(event, state, call);
  }
  return call(event->domain->handle, &event->attributes);
#endif
}

inline int push(Event *event, int32_t state, PyThreadState *thread = thread_state()) {
  tell_task(thread);
  ++t_task.pushes;
  return send(event, state, nvtxDomainRangePushEx);
}
inline void mark(Event *event, int32_t state) {
  tell_task();
  send(event, state, nvtxDomainMarkEx);
}
inline nvtxRangeId_t start(Event *event, int32_t state) {
  return send(event, state, nvtxDomainRangeStartEx);
}

// The one place where ranges end. `last` says what is to be changed at the end: the message, colour, category and
// payload that it was given; null where nothing is.
int pop_with(Domain *domain, int32_t state, Event *last);
void end_with(Domain *domain, int32_t state, nvtxRangeId_t id, Event *last);

inline int pop(Domain *domain, int32_t state, Event *last = nullptr, PyThreadState *thread = thread_state()) {
  if (last != nullptr) [[unlikely]] {
    return pop_with(domain, state, last);
  }
  tell_task(thread);
  --t_task.pushes;
  return nvtxDomainRangePop(handle_for(domain, state));
}
inline void end(Domain *domain, int32_t state, nvtxRangeId_t id, Event *last = nullptr) {
  if (last != nullptr) [[unlikely]] {
    return end_with(domain, state, id, last);
  }
  nvtxDomainRangeEnd(handle_for(domain, state), id);
}

// The same with the result that Python sees.
inline PyObject *send_mark(Event *event, int32_t state) {
  mark(event, state);
  Py_RETURN_NONE;
}
inline PyObject *send_push(Event *event, int32_t state) {
  return depth_or_none(push(event, state));
}

}  // namespace warplens::binding
