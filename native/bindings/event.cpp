#include "event.h"

#include <new>
#include <utility>

#include "color.h"
#include "payload.h"
#include "string_cache.h"

namespace warplens::binding {

namespace {

void replace(PyObject **field, PyObject *value) {
  PyObject *old = *field;
  *field = value;
  Py_XDECREF(old);
}

#if defined(Py_GIL_DISABLED)
PyMutex g_mutex;
#endif

// Keeps what was made, unless another thread was quicker: a tool may be reading that one.
void publish(Event *event, int32_t state, const nvtxEventAttributes_t &made, bool live, PyObject *holder) {
#if defined(Py_GIL_DISABLED)
  PyMutex_Lock(&g_mutex);
#endif
  if (event->state.load(std::memory_order_relaxed) != state) {
    std::swap(event->holder, holder);
    event->attributes = made;
    event->live = live;
    event->state.store(state, std::memory_order_release);
  }
#if defined(Py_GIL_DISABLED)
  PyMutex_Unlock(&g_mutex);
#endif
  Py_XDECREF(holder);
}

// The payload, which another thread may be about to replace. New reference.
PyObject *payload_now(Event *event) {
#if defined(Py_GIL_DISABLED)
  PyMutex_Lock(&g_mutex);
#endif
  PyObject *payload = Py_XNewRef(event->payload);
#if defined(Py_GIL_DISABLED)
  PyMutex_Unlock(&g_mutex);
#endif
  return payload;
}

void make(Event *event, int32_t state) {
  handle_for(event->domain, state);
  nvtxEventAttributes_t made = {};
  PyObject *holder = nullptr;
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.colorType = NVTX_COLOR_ARGB;
  made.color = event->argb;
  if (event->category != nullptr) {
    made.category = category_number(event, state);
  }
  bool live = false;
  PyObject *payload = payload_now(event);
  if (payload != nullptr) {
    Reading constant;
    live = !constant_payload(payload, &constant);
    constant.put_into(&made);
    Py_DECREF(payload);
  }
  if (event->message != nullptr) {
    made.message.registered = registered(event->domain, event->message);
    if (made.message.registered != nullptr) {
      made.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    } else {
      made.messageType = NVTX_MESSAGE_TYPE_ASCII;
      made.message.ascii = utf8(event->message, &holder);
    }
  }
  publish(event, state, made, live, holder);
}

}  // namespace

uint32_t category_number(Event *event, int32_t state) {
  if (event->category == nullptr) {
    return 0;
  }
  if (PyUnicode_Check(event->category)) {
    return category_named(event->domain, event->category, state);
  }
  return static_cast<uint32_t>(PyLong_AsUnsignedLongMask(event->category));
}

bool set_message(Event *event, PyObject *message) {
  PyObject *text = nullptr;
  if (given(message) != nullptr && (text = text_argument(message, "message")) == nullptr) {
    return false;
  }
  event->state.store(0, std::memory_order_release);
  replace(&event->message, text);
  return true;
}

bool set_color(Event *event, PyObject *color) {
  bool bad = false;
  const uint32_t argb = color_argument(color, &bad);
  if (bad) {
    return false;
  }
  event->state.store(0, std::memory_order_release);
  event->argb = argb;
  replace(&event->color, Py_XNewRef(given(color)));
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
  event->state.store(0, std::memory_order_release);
  replace(&event->category, kept);
  return true;
}

void set_payload(Event *event, PyObject *payload) {
  PyObject *kept = Py_XNewRef(given(payload));
#if defined(Py_GIL_DISABLED)
  PyMutex_Lock(&g_mutex);
#endif
  event->state.store(0, std::memory_order_release);
  event->live = false;
  std::swap(event->payload, kept);
#if defined(Py_GIL_DISABLED)
  PyMutex_Unlock(&g_mutex);
#endif
  Py_XDECREF(kept);
}

void move_event(Event *event, Domain *domain) {
  event->state.store(0, std::memory_order_release);
  use(domain, 1);
  use(event->domain, -1);
  event->domain = domain;
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
  make(event, state);
}

void load(Event *event, int32_t state, nvtxEventAttributes_t *attributes, Reading *reading) {
  PyObject *payload = payload_now(event);
  if (payload != nullptr) {
    read_payload(event->domain, state, payload, reading);
    Py_DECREF(payload);
  }
  // Only now: Python that ran meanwhile may have changed the event, and what its attributes point to is gone.
  ensure_prepared(event, state);
  *attributes = event->attributes;
  reading->put_into(attributes);
}

}  // namespace warplens::binding
