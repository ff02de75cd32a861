// Pops and ends ranges that get another message, colour, category or payload at their end.
#include "end_functions.h"

#include "bindings/values/attributes.h"
#include "bindings/values/string_cache.h"

namespace warplens::binding {

namespace {

bool says(PyObject *const *values) {
  return given(values[0]) != nullptr || given(values[1]) != nullptr || given(values[2]) != nullptr ||
         given(values[3]) != nullptr;
}

bool read(PyObject *const *values, Event *out) {
  return set_arguments(out, {message_text(values[0]), values[1], nullptr, values[2], values[3]});
}

}  // namespace

PyObject *pop_with_attributes(Domain *domain, int32_t state, PyObject *const *values) {
  if (!says(values)) {
    return state > 0 ? depth_or_none(pop(domain, state)) : Py_NewRef(Py_None);
  }
  Transient last;
  if (!read(values, &last.event)) {
    return nullptr;
  }
  return state > 0 ? depth_or_none(pop(domain, state, &last.event)) : Py_NewRef(Py_None);
}

PyObject *end_with_attributes(Domain *domain, int32_t state, nvtxRangeId_t id, PyObject *const *values) {
  const bool open = state > 0 && id != 0;
  if (says(values)) {
    Transient last;
    if (!read(values, &last.event)) {
      return nullptr;
    }
    if (open) {
      end(domain, state, id, &last.event);
    }
  } else if (open) {
    end(domain, state, id);
  }
  Py_RETURN_NONE;
}

PyObject *name_category(Domain *domain, PyObject *id, PyObject *name) {
  PyObject *number = PyNumber_Index(id);
  PyObject *text = number != nullptr ? text_argument(name, "name") : nullptr;
  const bool done = text != nullptr &&
                    name_category_number(domain, static_cast<uint32_t>(PyLong_AsUnsignedLongMask(number)),
                                         text, listener());
  Py_XDECREF(text);
  Py_XDECREF(number);
  if (!done) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

}  // namespace warplens::binding
