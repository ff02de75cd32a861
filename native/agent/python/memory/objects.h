// Helpers around the interpreter's C API.
#pragma once

#include <initializer_list>
#include <string_view>

#include "agent/python/hooks/capi.h"

namespace warplens::agent::python {

//! Calls it; a new reference, null with an exception.
Object *call(Object *callable, std::initializer_list<Object *> arguments);
Object *call_method(Object *object, const char *name, std::initializer_list<Object *> arguments);

//! Whether the type is exactly that.
bool is_exactly(Object *object, Object *type);

//! What is found in the `__dict__` of a module, a class, or a class above it, without asking the program; a new reference, or null without
//! an exception.
Object *static_attribute(Object *holder, const char *name);

//! The attribute, or null without an exception.
Object *attribute(Object *object, const char *name);

//! A number among the attributes; 0 where there is none.
int64_t number_attribute(Object *object, const char *name);

//! Keeps the exception that is set while we call something.
class KeptError {
 public:
  KeptError() { g_python.PyErr_Fetch(&type_, &value_, &trace_); }
  ~KeptError() { g_python.PyErr_Restore(type_, value_, trace_); }
  KeptError(const KeptError &) = delete;
  KeptError &operator=(const KeptError &) = delete;

 private:
  Object *type_ = nullptr;
  Object *value_ = nullptr;
  Object *trace_ = nullptr;
};

}  // namespace warplens::agent::python
