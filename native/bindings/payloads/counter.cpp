// The types of counters: registers them with their domain and sends their samples.
#include "counter.h"

#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtSemanticsTime.h>
#include <time.h>

#include <cstring>
#include <new>

#include "bindings/ranges/tasks.h"
#include "bindings/values/arguments.h"
#include "bindings/values/string_cache.h"
#include "payload.h"
#include "sample.h"
#include "semantics.h"

namespace warplens::binding {

namespace {

const Signature g_get_counter("get_counter", 2, 2,
                              {"name", "dtype", "description", "scope", "semantics", "time_domain"});
const Signature g_batch_submit("batch_submit", 2, 2, {"values", "timestamps"});

struct Counter {
  PyObject_HEAD Domain *domain;
  std::atomic<int32_t> state;  // the listener that `id` belongs to
  uint64_t id;                 // 0: the tool takes none
  Sample sample;
  PyObject *spec;  // of warplens.nvtx._counters, which `sample` points into
  PyObject *name, *dtype, *description, *scope, *semantics, *time_domain;
};

Counter *as_counter(PyObject *o) {
  return reinterpret_cast<Counter *>(o);
}

// A member of an enumeration by its number, anything else 0.
uint64_t value_of(PyObject *member) {
  PyObject *value = member != Py_None ? PyObject_GetAttrString(member, "value") : nullptr;
  const uint64_t number = value != nullptr && PyLong_Check(value) ? PyLong_AsUnsignedLongLongMask(value) : 0;
  Py_XDECREF(value);
  swallow_error();
  return number;
}

uint64_t scope_id(Domain *domain, int32_t state, PyObject *scope) {
  if (scope == Py_None) {
    return NVTX_SCOPE_NONE;
  }
  if (!PyUnicode_Check(scope)) {
    return value_of(scope);
  }
  return scope_number(domain, state, scope);
}

uint64_t schema_id(Counter *self, int32_t state) {
  PyObject *type = PyTuple_GET_ITEM(self->spec, 1);
  return PyTuple_Check(type) ? layout_schema(self->domain, state, type) : PyLong_AsUnsignedLongLongMask(type);
}

void register_locked(Counter *self, int32_t state) {
  if (self->state.load(std::memory_order_relaxed) == state) {
    return;
  }
  const nvtxDomainHandle_t handle = handle_for(self->domain, state);
  PyObject *holders[2] = {};
  nvtxSemanticsTime_t time = {};
  time.header.structSize = sizeof time;
  time.header.semanticId = NVTX_SEMANTIC_ID_TIME_V1;
  time.header.version = NVTX_TIME_SEMANTIC_VERSION;
  time.timeDomainId = value_of(self->time_domain);
  nvtxCounterAttr_t attributes = {};
  attributes.structSize = sizeof attributes;
  attributes.schemaId = schema_id(self, state);
  attributes.name = utf8(self->name, &holders[0]);
  if (self->description != Py_None) {
    attributes.description = utf8(self->description, &holders[1]);
  }
  attributes.scopeId = scope_id(self->domain, state, self->scope);
  attributes.semantics = &time.header;
  nvtxSemanticsCounter_t semantics;
  PyObject *meaning = self->semantics != Py_None ? ask_layouts("semantics_of", self->semantics) : nullptr;
  if (meaning != nullptr && read_semantics(meaning, &semantics)) {
    semantics.header.next = &time.header;
    attributes.semantics = &semantics.header;
  }
  if (self->state.load(std::memory_order_relaxed) != state) {  // asking Python may have let another thread in
    self->id = nvtxCounterRegister(handle, &attributes);
  }
  Py_XDECREF(meaning);
  Py_XDECREF(holders[0]);
  Py_XDECREF(holders[1]);
  self->state.store(state, std::memory_order_release);
}

[[gnu::noinline]] void make_known(Counter *self, int32_t state) {
  const KeptError error;
  WARPLENS_LOCK(self);
  register_locked(self, state);
  WARPLENS_UNLOCK();
}

// Before each sample: false where the tool takes no counters.
inline bool known(Counter *self, int32_t state) {
  tell_task();
  if (self->state.load(std::memory_order_acquire) != state) [[unlikely]] {
    make_known(self, state);
  }
  return self->id != 0;
}

void no_value(Counter *self, const char *format, PyObject *value) {
  warn_once(format, value);
  nvtxCounterSampleNoValue(self->domain->handle, self->id, NVTX_COUNTER_SAMPLE_UNAVAILABLE);
}

PyObject *wrong_value(const char *wanted, PyObject *value) {
  PyErr_Format(PyExc_TypeError, "sample() needs %s, not %.100s", wanted, Py_TYPE(value)->tp_name);
  return nullptr;
}

PyObject *int64_sample(PyObject *o, PyObject *value) {
  Counter *self = as_counter(o);
  const int32_t state = listener();
  if (!PyLong_Check(value) && !PyIndex_Check(value)) {
    return wrong_value("an int", value);
  }
  if (state == 0 || !known(self, state)) {
    Py_RETURN_NONE;
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow != 0 || (number == -1 && PyErr_Occurred())) [[unlikely]] {
    swallow_error();
    no_value(self, "a sample does not fit in 64 bits; it is recorded without a value (%.100s)", value);
    Py_RETURN_NONE;
  }
  nvtxCounterSampleInt64(self->domain->handle, self->id, number);
  Py_RETURN_NONE;
}

PyObject *float64_sample(PyObject *o, PyObject *value) {
  Counter *self = as_counter(o);
  const int32_t state = listener();
  const PyNumberMethods *methods = Py_TYPE(value)->tp_as_number;
  if (!PyFloat_Check(value) &&
      (methods == nullptr || (methods->nb_float == nullptr && methods->nb_index == nullptr))) {
    return wrong_value("a float", value);
  }
  if (state == 0 || !known(self, state)) {
    Py_RETURN_NONE;
  }
  const double number = PyFloat_AsDouble(value);
  if (number == -1.0 && PyErr_Occurred()) [[unlikely]] {
    swallow_error();
    no_value(self, "a sample is no float; it is recorded without a value (%.100s)", value);
    Py_RETURN_NONE;
  }
  nvtxCounterSampleFloat64(self->domain->handle, self->id, number);
  Py_RETURN_NONE;
}

PyObject *ext_sample(PyObject *o, PyObject *value) {
  Counter *self = as_counter(o);
  const int32_t state = listener();
  if (state == 0 || !known(self, state)) {
    Py_RETURN_NONE;
  }
  const KeptError error;
  Packed packed;
  if (!pack_sample(self->sample, value, &packed)) {
    no_value(self, "a sample does not fit its counter; it is recorded without a value (%.100s)", value);
  } else {
    nvtxCounterSample(self->domain->handle, self->id, packed.data, packed.size);
  }
  Py_RETURN_NONE;
}

PyObject *sample_no_value(PyObject *o, PyObject *reason) {
  Counter *self = as_counter(o);
  const uint64_t number = PyLong_Check(reason) ? PyLong_AsUnsignedLongLongMask(reason) : value_of(reason);
  const int32_t state = listener();
  if (state > 0 && known(self, state)) {
    nvtxCounterSampleNoValue(self->domain->handle, self->id, static_cast<uint8_t>(number));
  }
  Py_RETURN_NONE;
}

void submit(Counter *self, const Packed &values, const Packed &times) {
  const size_t count = values.size / static_cast<size_t>(self->sample.size);
  nvtxCounterBatch_t batch = {};
  batch.counterId = self->id;
  batch.counters = values.data;
  batch.countersSize = count * static_cast<size_t>(self->sample.size);
  batch.timestamps = static_cast<const int64_t *>(times.data);
  batch.timestampsSize = count * sizeof(int64_t);
  nvtxCounterBatchSubmit(self->domain->handle, &batch);
}

// Without an exception where both say how long they are and agree, or one does not say.
bool lengths_agree(PyObject *values, PyObject *times) {
  const Py_ssize_t a = PyObject_LengthHint(values, -1);
  const Py_ssize_t b = PyObject_LengthHint(times, -1);
  swallow_error();
  if (a >= 0 && b >= 0 && a != b) {
    PyErr_Format(PyExc_ValueError, "values and timestamps must have the same length, not %zd and %zd", a, b);
    return false;
  }
  return true;
}

PyObject *batch_submit(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Counter *self = as_counter(o);
  Values<2> given;
  if (!given.read(g_batch_submit, args, nargs, kwnames) || !lengths_agree(given[0], given[1])) {
    return nullptr;
  }
  const int32_t state = listener();
  if (state == 0 || !known(self, state)) {
    Py_RETURN_NONE;
  }
  Packed values;
  Packed times;
  if (!pack_samples(self->sample, given[0], &values) || !pack_times(given[1], &times) ||
      values.size / static_cast<size_t>(self->sample.size) != times.size / sizeof(int64_t)) {
    warn_once("a batch of samples does not fit its counter or its timestamps; it is not recorded (%.100s)",
              given[0]);
    Py_RETURN_NONE;
  }
  submit(self, values, times);
  Py_RETURN_NONE;
}

void counter_dealloc(PyObject *o) {
  Counter *self = as_counter(o);
  use(self->domain, -1);
  Py_CLEAR(self->spec);
  Py_CLEAR(self->name);
  Py_CLEAR(self->dtype);
  Py_CLEAR(self->description);
  Py_CLEAR(self->scope);
  Py_CLEAR(self->semantics);
  Py_CLEAR(self->time_domain);
  self->sample.~Sample();
  PyObject_Free(o);
}

PyObject *counter_repr(PyObject *o) {
  Counter *self = as_counter(o);
  return PyUnicode_FromFormat("<%s %R of %R>", strrchr(Py_TYPE(o)->tp_name, '.') + 1, self->name,
                              reinterpret_cast<PyObject *>(self->domain));
}

template <PyObject *Counter::*Field>
PyObject *get(PyObject *o, void *) {
  return Py_NewRef(as_counter(o)->*Field);
}

PyObject *get_domain(PyObject *o, void *) {
  return Py_NewRef(reinterpret_cast<PyObject *>(as_counter(o)->domain));
}

PyGetSetDef properties[] = {
    {"name", get<&Counter::name>, nullptr, "Its name.", nullptr},
    {"domain", get_domain, nullptr, "The domain that it belongs to.", nullptr},
    {"dtype", get<&Counter::dtype>, nullptr, "What its samples are.", nullptr},
    {"description", get<&Counter::description>, nullptr, "A longer text, or None.", nullptr},
    {"scope", get<&Counter::scope>, nullptr, "What it belongs to: a path, a PredefinedScope or None.",
     nullptr},
    {"semantics", get<&Counter::semantics>, nullptr, "CounterSemantics or None.", nullptr},
    {"time_domain", get<&Counter::time_domain>, nullptr, "The clock of its batches.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef common_methods[] = {
    {"sample_no_value", sample_no_value, METH_O,
     "sample_no_value($self, reason, /)\n--\n\nRecords that there is no value now, and why: a "
     "CounterNoValueReason."},
    {"batch_submit", method(batch_submit), METH_FASTCALL | METH_KEYWORDS,
     "batch_submit($self, values, timestamps)\n--\n\nRecords many samples with their times, int64 of the "
     "counter's time domain. Raises ValueError "
     "if the lengths differ."},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef int64_methods[] = {
    {"sample", int64_sample, METH_O, "sample($self, value, /)\n--\n\nRecords one int."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef float64_methods[] = {
    {"sample", float64_sample, METH_O, "sample($self, value, /)\n--\n\nRecords one float."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef ext_methods[] = {
    {"sample", ext_sample, METH_O,
     "sample($self, value, /)\n--\n\nRecords one sample: a number, or a tuple or dict with one per field, or "
     "what NumPy makes its dtype of."},
    {nullptr, nullptr, 0, nullptr},
};

// None for null; text for str and bytes; else as it is.
PyObject *kept_text(PyObject *o, const char *what) {
  if (given(o) == nullptr) {
    return Py_NewRef(Py_None);
  }
  return text_argument(o, what);
}

PyObject *kept_scope(PyObject *scope) {
  if (given(scope) == nullptr || PyUnicode_Check(scope) || PyBytes_Check(scope)) {
    return kept_text(scope, "scope");
  }
  if (!has_attribute(scope, "value")) {
    PyErr_Format(PyExc_TypeError, "scope must be a path, a PredefinedScope or None, not %.100s",
                 Py_TYPE(scope)->tp_name);
    return nullptr;
  }
  return Py_NewRef(scope);
}

PyObject *tool_time() {
  PyObject *module = PyImport_ImportModule("warplens.nvtx._enums");
  PyObject *type = module != nullptr ? PyObject_GetAttrString(module, "TimestampType") : nullptr;
  PyObject *member = type != nullptr ? PyObject_GetAttrString(type, "TOOL_PROVIDED") : nullptr;
  Py_XDECREF(type);
  Py_XDECREF(module);
  return member;
}

PyObject *kept_time(PyObject *time_domain) {
  if (given(time_domain) == nullptr) {
    return tool_time();
  }
  if (has_attribute(time_domain, "value")) {
    return Py_NewRef(time_domain);
  }
  PyErr_Format(PyExc_TypeError, "time_domain must be a TimestampType, not %.100s",
               Py_TYPE(time_domain)->tp_name);
  return nullptr;
}

PyObject *kept_semantics(PyObject *semantics) {
  if (given(semantics) == nullptr) {
    return Py_NewRef(Py_None);
  }
  if (!has_attribute(semantics, "unit_scale_numerator")) {
    PyErr_Format(PyExc_TypeError, "semantics must be CounterSemantics or None, not %.100s",
                 Py_TYPE(semantics)->tp_name);
    return nullptr;
  }
  return Py_NewRef(semantics);
}

// (spec, dtype), or null with TypeError.
PyObject *ask_spec(PyObject *dtype) {
  PyObject *module = PyImport_ImportModule("warplens.nvtx._counters");
  PyObject *answer = module != nullptr ? PyObject_CallMethod(module, "spec_of", "O", dtype) : nullptr;
  Py_XDECREF(module);
  return answer;
}

Counter *make(Domain *domain, PyObject *key, PyObject *dtype) {
  PyObject *spec = PyTuple_GET_ITEM(key, 1);
  const long which = PyLong_AsLong(PyTuple_GET_ITEM(spec, 0));
  Counter *self = PyObject_New(Counter, which == 0   ? &Int64CounterType
                                        : which == 1 ? &Float64CounterType
                                                     : &ExtCounterType);
  if (self == nullptr) {
    return nullptr;
  }
  self->domain = domain;
  use(domain, 1);
  new (&self->state) std::atomic<int32_t>(0);
  self->id = 0;
  new (&self->sample) Sample;
  self->spec = Py_NewRef(spec);
  self->name = Py_NewRef(PyTuple_GET_ITEM(key, 0));
  self->description = Py_NewRef(PyTuple_GET_ITEM(key, 2));
  self->scope = Py_NewRef(PyTuple_GET_ITEM(key, 3));
  self->semantics = Py_NewRef(PyTuple_GET_ITEM(key, 4));
  self->time_domain = Py_NewRef(PyTuple_GET_ITEM(key, 5));
  self->dtype = Py_NewRef(dtype);
  if (!read_sample(spec, dtype, &self->sample)) {
    Py_DECREF(self);
    return nullptr;
  }
  return self;
}

// The counter for these arguments: the same object for equal ones.
PyObject *counter_locked(Domain *domain, PyObject *key, PyObject *dtype) {
  if (domain->counters == nullptr && (domain->counters = PyDict_New()) == nullptr) {
    return nullptr;
  }
  PyObject *found = PyDict_GetItemWithError(domain->counters, key);
  if (found != nullptr || PyErr_Occurred()) {
    return Py_XNewRef(found);
  }
  PyObject *made = reinterpret_cast<PyObject *>(make(domain, key, dtype));
  if (made != nullptr && PyDict_SetItem(domain->counters, key, made) < 0) {
    Py_CLEAR(made);
  }
  return made;
}

}  // namespace

PyObject *domain_get_counter(PyObject *o, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<6> values;
  if (!values.read(g_get_counter, args, nargs, kwnames)) {
    return nullptr;
  }
  PyObject *found = nullptr;
  PyObject *answer = nullptr;
  PyObject *name = text_argument(values[0], "name");
  PyObject *description = name != nullptr ? kept_text(values[2], "description") : nullptr;
  PyObject *scope = description != nullptr ? kept_scope(values[3]) : nullptr;
  PyObject *semantics = scope != nullptr ? kept_semantics(values[4]) : nullptr;
  PyObject *time_domain = semantics != nullptr ? kept_time(values[5]) : nullptr;
  if (time_domain != nullptr && (answer = ask_spec(values[1])) != nullptr) {
    PyObject *key =
        PyTuple_Pack(6, name, PyTuple_GET_ITEM(answer, 0), description, scope, semantics, time_domain);
    if (key != nullptr) {
      WARPLENS_LOCK(o);
      found = counter_locked(reinterpret_cast<Domain *>(o), key, PyTuple_GET_ITEM(answer, 1));
      WARPLENS_UNLOCK();
      Py_DECREF(key);
    }
  }
  Py_XDECREF(answer);
  Py_XDECREF(time_domain);
  Py_XDECREF(semantics);
  Py_XDECREF(scope);
  Py_XDECREF(description);
  Py_XDECREF(name);
  return found;
}

PyObject *domain_get_timestamp(PyObject *self, PyObject *) {
  const int32_t state = listener();
  if (state == 0) {
    return PyLong_FromLong(0);
  }
  if (payload_call_taken(reinterpret_cast<Domain *>(self), state, NVTX3EXT_CBID_nvtxTimestampGet)) {
    return PyLong_FromLongLong(nvtxTimestampGet());
  }
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return PyLong_FromLongLong(now.tv_sec * 1000000000LL + now.tv_nsec);
}

PyTypeObject CounterType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx.Counter",
    .tp_basicsize = sizeof(Counter),
    .tp_dealloc = counter_dealloc,
    .tp_repr = counter_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_doc = "A counter of a domain. Made by Domain.get_counter().",
    .tp_methods = common_methods,
    .tp_getset = properties,
};

#define WARPLENS_COUNTER_TYPE(name, methods, what)                                  \
  {                                                                                 \
      .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx." name, \
      .tp_basicsize = sizeof(Counter),                                              \
      .tp_dealloc = counter_dealloc,                                                \
      .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,           \
      .tp_doc = what " Made by Domain.get_counter().",                              \
      .tp_methods = methods,                                                        \
      .tp_base = &CounterType,                                                      \
  }

PyTypeObject Int64CounterType =
    WARPLENS_COUNTER_TYPE("Int64Counter", int64_methods, "A counter of 64-bit integers.");
PyTypeObject Float64CounterType =
    WARPLENS_COUNTER_TYPE("Float64Counter", float64_methods, "A counter of doubles.");
PyTypeObject ExtCounterType =
    WARPLENS_COUNTER_TYPE("ExtCounter", ext_methods, "A counter of other numbers, or a group of counters.");

bool ready_counters() {
  return PyType_Ready(&CounterType) == 0 && PyType_Ready(&Int64CounterType) == 0 &&
         PyType_Ready(&Float64CounterType) == 0 && PyType_Ready(&ExtCounterType) == 0;
}

}  // namespace warplens::binding
