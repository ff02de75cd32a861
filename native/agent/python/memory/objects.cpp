// Helpers around the interpreter's C API.
#include "objects.h"

namespace warplens::agent::python {
namespace {

Object *in_dict(Object *holder, const char *name) {
  Held dict(attribute(holder, "__dict__"));
  Object *found = dict ? g_python.PyMapping_GetItemString(dict.get(), name) : nullptr;
  if (found == nullptr) {
    g_python.PyErr_Clear();
  }
  return found;
}

}  // namespace

Object *call(Object *callable, std::initializer_list<Object *> arguments) {
  Held tuple(g_python.PyTuple_New(static_cast<Size>(arguments.size())));
  Size at = 0;
  for (Object *argument : arguments) {
    if (!tuple || argument == nullptr) {
      return nullptr;
    }
    g_python.PyTuple_SetItem(tuple.get(), at++, held(argument));
  }
  return tuple ? g_python.PyObject_Call(callable, tuple.get(), nullptr) : nullptr;
}

Object *call_method(Object *object, const char *name, std::initializer_list<Object *> arguments) {
  Held method(g_python.PyObject_GetAttrString(object, name));
  return method ? call(method.get(), arguments) : nullptr;
}

bool is_exactly(Object *object, Object *type) {
  Held its(g_python.PyObject_Type(object));
  return its.get() == type;
}

Object *static_attribute(Object *holder, const char *name) {
  if (Object *found = in_dict(holder, name)) {
    return found;
  }
  Held bases(attribute(holder, "__mro__"));
  Size count = bases ? g_python.PyTuple_Size(bases.get()) : 0;
  g_python.PyErr_Clear();
  for (Size i = 0; i < count; ++i) {
    if (Object *found = in_dict(g_python.PyTuple_GetItem(bases.get(), i), name)) {
      return found;
    }
  }
  return nullptr;
}

Object *attribute(Object *object, const char *name) {
  Object *found = g_python.PyObject_GetAttrString(object, name);
  if (found == nullptr) {
    g_python.PyErr_Clear();
  }
  return found;
}

int64_t number_attribute(Object *object, const char *name) {
  Held value(attribute(object, name));
  int64_t number = value ? g_python.PyLong_AsLongLong(value.get()) : 0;
  g_python.PyErr_Clear();
  return number;
}

}  // namespace warplens::agent::python
