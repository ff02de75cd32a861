#include "event.h"

#include <new>
#include <utility>

#include "color.h"
#include "string_cache.h"

namespace warpline::binding {

namespace {

void warn(const char *format, PyObject *payload) {
  PyObject *module = PyImport_ImportModule("warpline.nvtx._warnings");
  PyObject *category = module != nullptr ? PyObject_GetAttrString(module, "NvtxWarning") : nullptr;
  if (category != nullptr) {
    PyErr_WarnFormat(category, 1, format, Py_TYPE(payload)->tp_name);
  }
  // Under -W error the warning is an exception; recording must not stop the program.
  PyErr_Clear();
  Py_XDECREF(category);
  Py_XDECREF(module);
}

bool integer_payload(nvtxEventAttributes_t *out, PyObject *number) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) {
    out->payloadType = NVTX_PAYLOAD_TYPE_INT64;
    out->payload.llValue = value;
    return true;
  }
  if (overflow > 0) {
    const unsigned long long wide = PyLong_AsUnsignedLongLong(number);
    if (!PyErr_Occurred()) {
      out->payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
      out->payload.ullValue = wide;
      return true;
    }
    PyErr_Clear();
  }
  return false;
}

// A number that is no int or float but behaves like one (np.int64, np.float32). Things with a length are arrays.
PyObject *scalar(PyObject *payload) {
  const PyTypeObject *type = Py_TYPE(payload);
  const bool sized = (type->tp_as_sequence != nullptr && type->tp_as_sequence->sq_length != nullptr) ||
                     (type->tp_as_mapping != nullptr && type->tp_as_mapping->mp_length != nullptr);
  const PyNumberMethods *number = type->tp_as_number;
  if (sized || number == nullptr) {
    return nullptr;
  }
  PyObject *plain = nullptr;
  if (number->nb_index != nullptr) {
    plain = PyNumber_Index(payload);
  } else if (number->nb_float != nullptr) {
    plain = PyNumber_Float(payload);
  }
  PyErr_Clear();
  return plain;
}

void payload_into(nvtxEventAttributes_t *out, PyObject *payload) {
  if (PyLong_Check(payload)) {
    if (!integer_payload(out, payload)) {
      warn("the payload (%.100s) does not fit in 64 bits; the event is recorded without it", payload);
    }
    return;
  }
  if (PyFloat_Check(payload)) {
    out->payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    out->payload.dValue = PyFloat_AS_DOUBLE(payload);
    return;
  }
  PyObject *plain = scalar(payload);
  if (plain == nullptr) {
    warn("a payload must be an int or a float, not %.100s; the event is recorded without it", payload);
    return;
  }
  payload_into(out, plain);
  Py_DECREF(plain);
}

uint32_t category_id(Event *event, int32_t state) {
  if (event->category == nullptr) {
    return 0;
  }
  if (PyUnicode_Check(event->category)) {
    return category_named(event->domain, event->category, state);
  }
  return static_cast<uint32_t>(PyLong_AsUnsignedLongMask(event->category));
}

void replace(PyObject **field, PyObject *value) {
  PyObject *old = *field;
  *field = value;
  Py_XDECREF(old);
}

// Keeps what was made, unless another thread was quicker: a tool may be reading that one.
void publish(Event *event, int32_t state, const nvtxEventAttributes_t &made, PyObject *holder) {
#if defined(Py_GIL_DISABLED)
  static PyMutex mutex;
  PyMutex_Lock(&mutex);
#endif
  if (event->state.load(std::memory_order_relaxed) != state) {
    std::swap(event->holder, holder);
    event->attributes = made;
    event->state.store(state, std::memory_order_release);
  }
#if defined(Py_GIL_DISABLED)
  PyMutex_Unlock(&mutex);
#endif
  Py_XDECREF(holder);
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
    made.category = category_id(event, state);
  }
  if (event->payload != nullptr) {
    payload_into(&made, event->payload);
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
  publish(event, state, made, holder);
}

}  // namespace

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
  event->state.store(0, std::memory_order_release);
  replace(&event->payload, Py_XNewRef(given(payload)));
}

bool set_domain(Event *event, PyObject *domain) {
  Domain *named = domain_named(domain);
  if (named == nullptr) {
    return false;
  }
  event->state.store(0, std::memory_order_release);
  event->domain = named;
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

}  // namespace warpline::binding
