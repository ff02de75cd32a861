// EventAttributes (one event's arguments, made once and sent often) and RegisteredString.
#pragma once

#include "bindings/ranges/event.h"
#include "compat.h"

namespace warplens::binding {

// Made by a domain, the attributes hold an event; made by annotate.attributes, they show the annotation's event.
struct EventAttributes {
  PyObject_HEAD Event event;  // raw memory where there is an owner
  PyObject *owner;            // the annotation, or null
  Event *shown;               // the owner's event, else the one above
};

extern PyTypeObject EventAttributesType;

inline Event &event_of(PyObject *attributes) {
  return *reinterpret_cast<EventAttributes *>(attributes)->shown;
}

// The object whose lock guards the event.
inline PyObject *guard_of(PyObject *attributes) {
  PyObject *owner = reinterpret_cast<EventAttributes *>(attributes)->owner;
  return owner != nullptr ? owner : attributes;
}
extern PyTypeObject RegisteredStringType;

// What attributes say, held: making others of it may run Python, which may change them.
class HeldArguments {
 public:
  explicit HeldArguments(PyObject *attributes);
  ~HeldArguments();
  HeldArguments(const HeldArguments &) = delete;
  HeldArguments &operator=(const HeldArguments &) = delete;
  Arguments arguments;
};

// New references, or null with TypeError.
PyObject *make_attributes(Domain *domain, const Arguments &arguments);
PyObject *show_attributes(PyObject *owner, Event *event);  // changes apply to `event`, which `owner` holds
PyObject *make_registered_string(Domain *domain, PyObject *text);

// The str of a message argument that may also be a RegisteredString; borrowed.
PyObject *message_text(PyObject *message);

}  // namespace warplens::binding
