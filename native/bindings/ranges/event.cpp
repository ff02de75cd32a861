// The NVTX attributes of an event, made once for each listener and used until the event changes.
//
// The protocol without a GIL. Fields change under `mutex`, which also counts `changes` and sets `state`
// to 0: attributes made of older fields are void. A thread makes new attributes outside of the lock
// and publishes them only if `changes` is what it was. `serial` is a seqlock over `attributes`: odd
// while they are written. A reader without the lock copies them and compares `serial` before and
// after; if it differs, the reader takes the slow way.
#include "event.h"

#include <new>
#include <utility>

#include "bindings/payloads/payload.h"
#include "bindings/values/color.h"
#include "bindings/values/string_cache.h"

namespace warplens::binding {

namespace {

#if defined(Py_GIL_DISABLED)
// What an event says changes under its lock; what was made of it before is void.
class Changing {
 public:
  explicit Changing(Event *event) : event_(event) {
    event->mutex.lock();
    ++event->changes;
    __atomic_store_n(&event->live, false, __ATOMIC_RELAXED);
    event->state.store(0, std::memory_order_release);
  }
  ~Changing() { event_->mutex.unlock(); }
  Changing(const Changing &) = delete;
  Changing &operator=(const Changing &) = delete;

 private:
  Event *event_;
};
#else
class Changing {
 public:
  explicit Changing(Event *event) {
    event->state.store(0, std::memory_order_release);
    event->live = false;
  }
};
#endif

void replace(Event *event, PyObject **field, PyObject *value) {
  {
    const Changing changing(event);
    std::swap(*field, value);
  }
  Py_XDECREF(value);
}

// Keeps what was made, unless another thread was quicker: a tool may be reading that one. False where it is not what the event says any
// more.
bool publish(Event *event, int32_t state, const nvtxEventAttributes_t &made, bool live, PyObject *holder,
             [[maybe_unused]] uint32_t changes) {
  bool good = true;
#if defined(Py_GIL_DISABLED)
  using Word [[gnu::may_alias]] = uint64_t;
  {
    const Guard lock(event->mutex);
    good = event->changes == changes;
    if (good && event->state.load(std::memory_order_relaxed) != state) {
      const uint32_t serial = event->serial.load(std::memory_order_relaxed);
      event->serial.store(serial + 1, std::memory_order_relaxed);
      for (size_t i = 0; i < sizeof(made) / sizeof(Word); ++i) {
        __atomic_store_n(&reinterpret_cast<Word *>(&event->attributes)[i],
                         reinterpret_cast<const Word *>(&made)[i], __ATOMIC_RELEASE);
      }
      __atomic_store_n(&event->live, live || made.messageType == NVTX_MESSAGE_TYPE_ASCII, __ATOMIC_RELAXED);
      std::swap(event->holder, holder);
      event->serial.store(serial + 2, std::memory_order_release);
      event->state.store(state, std::memory_order_release);
    }
  }
#else
  if (event->state.load(std::memory_order_relaxed) != state) {
    std::swap(event->holder, holder);
    event->attributes = made;
    event->live = live;
    event->state.store(state, std::memory_order_release);
  }
#endif
  Py_XDECREF(holder);
  return good;
}

uint32_t number_of_category(Domain *domain, PyObject *category, int32_t state) {
  if (category == nullptr) {
    return 0;
  }
  if (PyUnicode_Check(category)) {
    return category_named(domain, category, state);
  }
  return static_cast<uint32_t>(PyLong_AsUnsignedLongMask(category));
}

bool make(Event *event, int32_t state) {
  const Said said(event);
  handle_for(said.domain, state);
  nvtxEventAttributes_t made = {};
  PyObject *holder = nullptr;
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.colorType = NVTX_COLOR_ARGB;
  made.color = said.argb;
  made.category = number_of_category(said.domain, said.category, state);
  bool live = false;
  if (said.payload != nullptr) {
    Reading constant;
    live = !constant_payload(said.payload, &constant);
    constant.put_into(&made);
  }
  if (said.message != nullptr) {
    made.message.registered = registered(said.domain, said.message);
    if (made.message.registered != nullptr) {
      made.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    } else {
      made.messageType = NVTX_MESSAGE_TYPE_ASCII;
      made.message.ascii = utf8(said.message, &holder);
    }
  }
  return publish(event, state, made, live, holder, said.changes);
}

}  // namespace

uint32_t category_number(Event *event, int32_t state) {
  return number_of_category(event->domain, event->category, state);
}

bool set_message(Event *event, PyObject *message) {
  PyObject *text = nullptr;
  if (given(message) != nullptr && (text = text_argument(message, "message")) == nullptr) {
    return false;
  }
  replace(event, &event->message, text);
  return true;
}

bool set_color(Event *event, PyObject *color) {
  bool bad = false;
  const uint32_t argb = color_argument(color, &bad);
  if (bad) {
    return false;
  }
  PyObject *kept = Py_XNewRef(given(color));
  {
    const Changing changing(event);
    event->argb = argb;
    std::swap(event->color, kept);
  }
  Py_XDECREF(kept);
  return true;
}

bool set_category(Event *event, PyObject *category) {
  PyObject *kept = given(category);
  if (kept != nullptr) {
    if (PyLong_Check(kept)) {
      Py_INCREF(kept);
    } else if (PyUnicode_Check(kept) || PyBytes_Check(kept)) {
      kept = text_argument(kept, "category");
    } else if (PyIndex_Check(kept)) {
      kept = PyNumber_Index(kept);
    } else {
      PyErr_Format(PyExc_TypeError, "category must be a str, an int or None, not %.100s",
                   Py_TYPE(kept)->tp_name);
      return false;
    }
    if (kept == nullptr) {
      return false;
    }
  }
  replace(event, &event->category, kept);
  return true;
}

void set_payload(Event *event, PyObject *payload) {
  replace(event, &event->payload, Py_XNewRef(given(payload)));
}

void move_event(Event *event, Domain *domain) {
  use(domain, 1);
  {
    const Changing changing(event);
    std::swap(event->domain, domain);
  }
  use(domain, -1);
}

bool set_domain(Event *event, PyObject *domain) {
  Domain *named = domain_named(domain);
  if (named == nullptr) {
    return false;
  }
  move_event(event, named);
  return true;
}

bool set_arguments(Event *event, const Arguments &a) {
  if (a.domain != nullptr && !set_domain(event, a.domain)) {
    return false;
  }
  if (a.message != nullptr && !set_message(event, a.message)) {
    return false;
  }
  if (a.color != nullptr && !set_color(event, a.color)) {
    return false;
  }
  if (a.category != nullptr && !set_category(event, a.category)) {
    return false;
  }
  if (a.payload != nullptr) {
    set_payload(event, a.payload);
  }
  return true;
}

void clear_event(Event *event) {
  use(event->domain, -1);
  Py_CLEAR(event->message);
  Py_CLEAR(event->color);
  Py_CLEAR(event->category);
  Py_CLEAR(event->payload);
  Py_CLEAR(event->holder);
}

void prepare(Event *event, int32_t state) {
  const KeptError error;
  for (int i = 0; i < 100 && !make(event, state); ++i) {
  }
}

void load(Event *event, int32_t state, nvtxEventAttributes_t *attributes, Reading *reading) {
#if defined(Py_GIL_DISABLED)
  const Said said(event);
  if (said.payload != nullptr) {
    read_payload(said.domain, state, said.payload, reading);
  }
  *attributes = {};
  for (int i = 0; i < 100; ++i) {  // other threads may change it all the while
    ensure_prepared(event, state);
    const Guard lock(event->mutex);
    if (event->state.load(std::memory_order_relaxed) == state) {
      *attributes = event->attributes;
      if (attributes->messageType ==
          NVTX_MESSAGE_TYPE_ASCII) {  // it points into the text, or into the holder
        reading->hold(Py_XNewRef(event->message));
        reading->hold(Py_XNewRef(event->holder));
      }
      break;
    }
  }
#else
  PyObject *payload = Py_XNewRef(event->payload);
  if (payload != nullptr) {
    read_payload(event->domain, state, payload, reading);
    Py_DECREF(payload);
  }
  // Only now: Python that ran meanwhile may have changed the event, and what its attributes point to is gone.
  ensure_prepared(event, state);
  *attributes = event->attributes;
#endif
  reading->put_into(attributes);
}

}  // namespace warplens::binding
