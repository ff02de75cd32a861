// warplens.nvtx._binding: the module.
#include "bindings/payloads/counter.h"
#include "bindings/payloads/scalars.h"
#include "bindings/ranges/annotate.h"
#include "bindings/ranges/profile.h"
#include "bindings/ranges/range_entry.h"
#include "bindings/ranges/wrapped.h"
#include "bindings/values/arguments.h"
#include "bindings/values/attributes.h"
#include "bindings/values/compat.h"
#include "domain.h"
#include "functions.h"
#include "naming.h"
#include "objects.h"

namespace warplens::binding {

namespace {

bool add_type(PyObject *module, const char *name, PyTypeObject *type) {
  return PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject *>(type)) == 0;
}

int execute(PyObject *module) {
  for (PyTypeObject *type :
       {&DomainType, &WrappedType, &EventAttributesType, &RegisteredStringType, &RangeIdType}) {
    if (PyType_Ready(type) < 0) {
      return -1;
    }
  }
  const bool done =
      init_listener() && init_range_entry() && init_profile() && init_annotate() && Signature::intern_all() &&
      init_domains() && add_scalar_types(module) && ready_counters() && ready_objects() && init_naming() &&
      add_type(module, "annotate", &AnnotateType) && add_type(module, "Profile", &ProfileType) &&
      add_type(module, "Domain", &DomainType) && add_type(module, "Counter", &CounterType) &&
      add_type(module, "Int64Counter", &Int64CounterType) &&
      add_type(module, "Float64Counter", &Float64CounterType) &&
      add_type(module, "ExtCounter", &ExtCounterType) && add_type(module, "Resource", &ResourceType) &&
      add_type(module, "SyncObject", &SyncType) &&
      add_type(module, "EventAttributes", &EventAttributesType) &&
      add_type(module, "RegisteredString", &RegisteredStringType) &&
      add_type(module, "RangeId", &RangeIdType) && add_type(module, "annotated_function", &WrappedType);
  return done ? 0 : -1;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void *>(execute)},
#if defined(Py_GIL_DISABLED)
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "warplens.nvtx._binding",
    .m_doc = "NVTX for Python, straight through the NVTX v3 headers.",
    .m_size = 0,
    .m_methods = g_functions,
    .m_slots = slots,
};

}  // namespace
}  // namespace warplens::binding

PyMODINIT_FUNC PyInit__binding() {
  return PyModuleDef_Init(&warplens::binding::definition);
}
