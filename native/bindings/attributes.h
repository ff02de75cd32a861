// EventAttributes (one event's arguments, made once and sent often) and RegisteredString.
#pragma once

#include "compat.h"
#include "event.h"

namespace warplens::binding {

struct EventAttributes {
  PyObject_HEAD Event event;
};

extern PyTypeObject EventAttributesType;
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
PyObject *make_registered_string(Domain *domain, PyObject *text);

// The str of a message argument that may also be a RegisteredString; borrowed.
PyObject *message_text(PyObject *message);

}  // namespace warplens::binding
