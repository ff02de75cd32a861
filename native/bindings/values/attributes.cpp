// The types EventAttributes and RegisteredString.
#include "attributes.h"

#include "string_cache.h"

namespace warplens::binding {

namespace {

struct RegisteredString {
  PyObject_HEAD Domain *domain;
  PyObject *string;
};

EventAttributes *as_attributes(PyObject *o) {
  return reinterpret_cast<EventAttributes *>(o);
}

RegisteredString *as_string(PyObject *o) {
  return reinterpret_cast<RegisteredString *>(o);
}

void attributes_dealloc(PyObject *o) {
  PyObject_GC_UnTrack(o);
  if (as_attributes(o)->owner == nullptr) {
    clear_event(&as_attributes(o)->event);
  } else {
    Py_CLEAR(as_attributes(o)->owner);
  }
  PyObject_GC_Del(o);
}

int attributes_traverse(PyObject *o, visitproc visit, void *arg) {
  if (as_attributes(o)->owner == nullptr) {
    WARPLENS_VISIT_EVENT(as_attributes(o)->event);
  } else {
    Py_VISIT(as_attributes(o)->owner);
  }
  return 0;
}

// An owner stays: it ends a cycle by dropping its payload.
int attributes_clear(PyObject *o) {
  if (as_attributes(o)->owner == nullptr) {
    set_payload(&as_attributes(o)->event, nullptr);
  }
  return 0;
}

PyObject *get_message(PyObject *o, void *) {
  const Said e(&event_of(o));
  if (e.message == nullptr) {
    Py_RETURN_NONE;
  }
  return make_registered_string(e.domain, e.message);
}

PyObject *get_color(PyObject *o, void *) {
  return none_if_null(Said(&event_of(o)).color);
}

PyObject *get_category(PyObject *o, void *) {
  const Said e(&event_of(o));
  if (e.category == nullptr) {
    return PyLong_FromLong(0);
  }
  if (PyUnicode_Check(e.category)) {
    return PyLong_FromUnsignedLong(category_named(e.domain, e.category, listener()));
  }
  return Py_NewRef(e.category);
}

PyObject *get_payload(PyObject *o, void *) {
  return none_if_null(Said(&event_of(o)).payload);
}

template <bool (*Set)(Event *, PyObject *)>
int set(PyObject *o, PyObject *value, void *) {
  bool done = false;
  WARPLENS_LOCK(guard_of(o));
  done = Set(&event_of(o), value);
  WARPLENS_UNLOCK();
  track_payload(guard_of(o), &event_of(o));
  return done ? 0 : -1;
}

bool set_any_message(Event *event, PyObject *value) {
  return set_message(event, message_text(value));
}

bool set_any_payload(Event *event, PyObject *value) {
  set_payload(event, value);
  return true;
}

PyObject *attributes_repr(PyObject *o) {
  const int within = Py_ReprEnter(o);  // its payload may hold it
  if (within != 0) {
    return within > 0 ? PyUnicode_FromString("<EventAttributes ...>") : nullptr;
  }
  const HeldArguments held(o);
  const Arguments &a = held.arguments;
  PyObject *text = PyUnicode_FromFormat("<EventAttributes message=%R color=%R category=%R payload=%R>",
                                        a.message ? a.message : Py_None, a.color ? a.color : Py_None,
                                        a.category ? a.category : Py_None, a.payload ? a.payload : Py_None);
  Py_ReprLeave(o);
  return text;
}

PyGetSetDef attributes_properties[] = {
    {"message", get_message, set<set_any_message>, "RegisteredString or None; also takes a str.", nullptr},
    {"color", get_color, set<set_color>, "As given: a name, 0xAARRGGBB or None.", nullptr},
    {"category", get_category, set<set_category>, "The category's number, 0 for none; also takes a name.",
     nullptr},
    {"payload", get_payload, set<set_any_payload>, "As given; read anew at each event.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

void string_dealloc(PyObject *o) {
  use(as_string(o)->domain, -1);
  Py_CLEAR(as_string(o)->string);
  PyObject_Free(o);
}

PyObject *string_repr(PyObject *o) {
  return PyUnicode_FromFormat("<RegisteredString %R>", as_string(o)->string);
}

PyObject *get_string(PyObject *o, void *) {
  return Py_NewRef(as_string(o)->string);
}

PyObject *get_domain(PyObject *o, void *) {
  return Py_NewRef(reinterpret_cast<PyObject *>(as_string(o)->domain));
}

PyObject *string_compare(PyObject *a, PyObject *b, int operation) {
  if (!Py_IS_TYPE(b, &RegisteredStringType) || (operation != Py_EQ && operation != Py_NE)) {
    Py_RETURN_NOTIMPLEMENTED;
  }
  const bool same = as_string(a)->domain == as_string(b)->domain &&
                    PyUnicode_Compare(as_string(a)->string, as_string(b)->string) == 0;
  return PyBool_FromLong(same == (operation == Py_EQ));
}

Py_hash_t string_hash(PyObject *o) {
  return PyObject_Hash(as_string(o)->string);
}

PyGetSetDef string_properties[] = {
    {"string", get_string, nullptr, "The text.", nullptr},
    {"domain", get_domain, nullptr, "The domain that it is registered in.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

PyTypeObject EventAttributesType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx._binding.EventAttributes",
    .tp_basicsize = sizeof(EventAttributes),
    .tp_dealloc = attributes_dealloc,
    .tp_repr = attributes_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "What an event says. Made by Domain.get_event_attributes(); may be changed and used again.",
    .tp_traverse = attributes_traverse,
    .tp_clear = attributes_clear,
    .tp_getset = attributes_properties,
};

PyTypeObject RegisteredStringType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx._binding.RegisteredString",
    .tp_basicsize = sizeof(RegisteredString),
    .tp_dealloc = string_dealloc,
    .tp_repr = string_repr,
    .tp_hash = string_hash,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A message that a domain knows. Made by Domain.get_registered_string().",
    .tp_richcompare = string_compare,
    .tp_getset = string_properties,
};

HeldArguments::HeldArguments(PyObject *attributes) {
  const Said said(&event_of(attributes));
  arguments = {Py_XNewRef(said.message), Py_XNewRef(said.color), nullptr, Py_XNewRef(said.category),
               Py_XNewRef(said.payload)};
}

HeldArguments::~HeldArguments() {
  Py_XDECREF(arguments.message);
  Py_XDECREF(arguments.color);
  Py_XDECREF(arguments.category);
  Py_XDECREF(arguments.payload);
}

PyObject *make_attributes(Domain *domain, const Arguments &arguments) {
  EventAttributes *self = PyObject_GC_New(EventAttributes, &EventAttributesType);
  if (self == nullptr) {
    return nullptr;
  }
  self->owner = nullptr;
  self->shown = &self->event;
  init_event(&self->event, domain, nullptr);
  Arguments plain = arguments;
  plain.message = message_text(arguments.message);
  if (!set_arguments(&self->event, plain)) {
    Py_DECREF(self);
    return nullptr;
  }
  track_payload(reinterpret_cast<PyObject *>(self), &self->event);
  return reinterpret_cast<PyObject *>(self);
}

PyObject *show_attributes(PyObject *owner, Event *event) {
  EventAttributes *self = PyObject_GC_New(EventAttributes, &EventAttributesType);
  if (self == nullptr) {
    return nullptr;
  }
  self->owner = Py_NewRef(owner);
  self->shown = event;
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject *>(self);
}

PyObject *make_registered_string(Domain *domain, PyObject *text) {
  PyObject *exact = text_argument(text, "string");
  if (exact == nullptr) {
    return nullptr;
  }
  RegisteredString *self = PyObject_New(RegisteredString, &RegisteredStringType);
  if (self == nullptr) {
    Py_DECREF(exact);
    return nullptr;
  }
  self->domain = domain;
  use(domain, 1);
  self->string = exact;
  return reinterpret_cast<PyObject *>(self);
}

PyObject *message_text(PyObject *message) {
  return message != nullptr && Py_IS_TYPE(message, &RegisteredStringType) ? as_string(message)->string
                                                                          : message;
}

}  // namespace warplens::binding
