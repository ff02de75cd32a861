// Reads a CounterSemantics object into NVTX's structure.
#include "semantics.h"

#include "schemas.h"

namespace warplens::binding {

namespace {

nvtxCounterLimit_t limit(PyObject *value, int64_t type) {
  nvtxCounterLimit_t out = {};
  if (value == Py_None) {
    return out;
  }
  if (type == NVTX_COUNTER_LIMIT_F64) {
    out.f64 = PyFloat_AsDouble(value);
  } else if (type == NVTX_COUNTER_LIMIT_U64) {
    out.u64 = PyLong_AsUnsignedLongLongMask(value);
  } else {
    out.i64 = static_cast<int64_t>(PyLong_AsUnsignedLongLongMask(value));
  }
  return out;
}

}  // namespace

bool read_semantics(PyObject *meaning, nvtxSemanticsCounter_t *out) {
  if (!PyTuple_Check(meaning) || PyTuple_GET_SIZE(meaning) != 7) {
    return false;
  }
  PyObject *unit = PyTuple_GET_ITEM(meaning, 1);
  *out = {};
  out->header.structSize = sizeof(nvtxSemanticsCounter_t);
  out->header.semanticId = NVTX_SEMANTIC_ID_COUNTERS_V1;
  out->header.version = NVTX_COUNTER_SEMANTIC_VERSION;
  out->flags = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(meaning, 0));
  out->unit = PyBytes_Check(unit) ? PyBytes_AS_STRING(unit) : nullptr;
  out->unitScaleNumerator = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(meaning, 2));
  out->unitScaleDenominator = PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(meaning, 3));
  out->limitType = static_cast<int64_t>(PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(meaning, 4)));
  out->min = limit(PyTuple_GET_ITEM(meaning, 5), out->limitType);
  out->max = limit(PyTuple_GET_ITEM(meaning, 6), out->limitType);
  swallow_error();
  return true;
}

}  // namespace warplens::binding
