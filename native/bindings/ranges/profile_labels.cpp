// Makes and registers the names of profiled functions, once for each code object.
#include <cstring>

#include "bindings/values/string_cache.h"
#include "event.h"
#include "frame.h"
#include "profile.h"

namespace warplens::binding {

namespace {

nvtxStringHandle_t registered_label(PyObject *text, const char *suffix) {
  PyObject *whole = PyUnicode_FromFormat("%U%s", text, suffix);
  nvtxStringHandle_t handle = nullptr;
  if (whole != nullptr) {
    PyObject *holder = nullptr;
    handle = nvtxDomainRegisterStringA(g_profile_domain->handle, utf8(whole, &holder));
    Py_XDECREF(holder);
    Py_DECREF(whole);
  }
  PyErr_Clear();
  return handle;
}

PyObject *text_of_code(const Profile *self, PyCodeObject *code) {
  if (!self->linenos) {
    return Py_NewRef(code->co_name);
  }
  const Py_ssize_t length = PyUnicode_GET_LENGTH(code->co_filename);
  const Py_ssize_t slash = PyUnicode_FindChar(code->co_filename, '/', 0, length, -1);
  PyObject *file = PyUnicode_Substring(code->co_filename, slash + 1, length);
  PyObject *text = file != nullptr
                       ? PyUnicode_FromFormat("%U:%d(%U)", file, code->co_firstlineno, code->co_name)
                       : nullptr;
  Py_XDECREF(file);
  return text;
}

void make_label(Profile *self, CallLabel *label, PyCodeObject *code, const PyMethodDef *definition,
                int32_t state) {
  handle_for(g_profile_domain, state);
  PyObject *text = code != nullptr ? text_of_code(self, code) : PyUnicode_FromString(definition->ml_name);
  label->called = label->resumed = nullptr;
  if (text != nullptr) {
    label->called = registered_label(text, "");
    if (code != nullptr && (code->co_flags & kSuspends) != 0) {
      label->resumed = registered_label(text, " (resumed)");
    }
    Py_DECREF(text);
  }
  PyErr_Clear();
}

// Labels of all threads: a thread's own table is small, and a tool need not hear the same text twice.
bool recall_label(Profile *self, CallLabel *label, PyObject *key, int32_t state) {
  PyObject *known = find_in(self->labels, key);
  const bool good = known != nullptr && PyLong_AsLong(PyTuple_GET_ITEM(known, 3)) == state;
  if (good) {
    label->called = static_cast<nvtxStringHandle_t>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(known, 1)));
    label->resumed = static_cast<nvtxStringHandle_t>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(known, 2)));
  }
  Py_XDECREF(known);
  return good;
}

void find_label(Profile *self, CallLabel *label, PyCodeObject *code, const PyMethodDef *definition,
                int32_t state) {
  PyObject *key =
      PyLong_FromVoidPtr(code != nullptr ? static_cast<void *>(code) : const_cast<PyMethodDef *>(definition));
  if (key == nullptr || !recall_label(self, label, key, state)) {
    make_label(self, label, code, definition, state);
    // The code object is kept, so that its address does not come to mean another one.
    PyObject *owner = code != nullptr ? reinterpret_cast<PyObject *>(code) : Py_None;
    PyObject *value = Py_BuildValue("(ONNi)", owner, PyLong_FromVoidPtr(label->called),
                                    PyLong_FromVoidPtr(label->resumed), static_cast<int>(state));
    if (key == nullptr || value == nullptr || PyDict_SetItem(self->labels, key, value) < 0) {
      PyErr_Clear();
    }
    Py_XDECREF(value);
  }
  Py_XDECREF(key);
}

}  // namespace

const CallLabel &label_for(Profile *self, ThreadCalls *calls, PyCodeObject *code,
                           const PyMethodDef *definition, int32_t state) {
  const uint64_t epoch = static_cast<uint64_t>(self->serial) << 32 | static_cast<uint32_t>(state);
  if (calls->epoch != epoch) [[unlikely]] {
    std::memset(calls->labels, 0, sizeof(calls->labels));
    calls->epoch = epoch;
  }
  const void *key = code != nullptr ? static_cast<const void *>(code) : definition;
  const void *check = code != nullptr ? nullptr : definition->ml_name;
  const uintptr_t hash = reinterpret_cast<uintptr_t>(key);
  CallLabel &label = calls->labels[(hash >> 5 ^ hash >> 13) % kCallLabels];
  if (label.key != key || label.check != check) [[unlikely]] {
    const KeptError error;
    label.key = key;
    label.check = check;
    find_label(self, &label, code, definition, state);
  }
  return label;
}

}  // namespace warplens::binding
