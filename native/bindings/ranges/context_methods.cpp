// Descriptors of __enter__ and __exit__ whose bound objects come from a free list.
#include "context_methods.h"

#include <cstddef>

namespace warplens::binding {

namespace {

// In the type: called with the object as first argument, bound when looked up through an object.
struct Special {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyTypeObject *owner;  // static, so never freed
  SpecialFunction function;
  const char *name;
  bool takes_exception;
};

struct Bound {
  PyObject_HEAD vectorcallfunc vectorcall;
  Special *special;  // lives as long as its type, that is for good
  PyObject *self;
};

extern PyTypeObject SpecialType;
extern PyTypeObject BoundType;

Special *as_special(PyObject *o) {
  return reinterpret_cast<Special *>(o);
}
Bound *as_bound(PyObject *o) {
  return reinterpret_cast<Bound *>(o);
}

// Any number of exception arguments is accepted: ExitStack and friends pass three, and nothing reads them.
PyObject *wrong_call(const Special *special, const char *what) {
  PyErr_Format(PyExc_TypeError, "%.100s.%s() %s", special->owner->tp_name, special->name, what);
  return nullptr;
}

bool fits(const Special *special, Py_ssize_t nargs, PyObject *kwnames) {
  return kwnames == nullptr && (nargs == 0 || special->takes_exception);
}

PyObject *special_call(PyObject *o, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  const Special *special = as_special(o);
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  if (nargs < 1 || !PyObject_TypeCheck(args[0], special->owner)) {
    return wrong_call(special, "needs an object of its type");
  }
  if (!fits(special, nargs - 1, kwnames)) {
    return wrong_call(special, "takes no such arguments");
  }
  return special->function(args[0]);
}

PyObject *bound_call(PyObject *o, PyObject *const *, size_t nargsf, PyObject *kwnames) {
  Bound *bound = as_bound(o);
  if (!fits(bound->special, PyVectorcall_NARGS(nargsf), kwnames)) [[unlikely]] {
    return wrong_call(bound->special, "takes no such arguments");
  }
  return bound->special->function(bound->self);
}

#if !defined(Py_GIL_DISABLED)
constexpr int kKept = 32;
Bound *g_kept[kKept];
int g_kept_count = 0;
#endif

Bound *allocate() {
#if !defined(Py_GIL_DISABLED)
  if (g_kept_count > 0) [[likely]] {
    Bound *bound = g_kept[--g_kept_count];
    revive(reinterpret_cast<PyObject *>(bound), &BoundType);
    return bound;
  }
#endif
  Bound *bound = PyObject_New(Bound, &BoundType);
  if (bound != nullptr) {
    bound->vectorcall = bound_call;
  }
  return bound;
}

PyObject *special_get(PyObject *o, PyObject *object, PyObject *) {
  if (object == nullptr || object == Py_None) {
    return Py_NewRef(o);
  }
  Bound *bound = allocate();
  if (bound == nullptr) {
    return nullptr;
  }
  bound->special = as_special(o);
  bound->self = Py_NewRef(object);
  return reinterpret_cast<PyObject *>(bound);
}

void bound_dealloc(PyObject *o) {
  Bound *bound = as_bound(o);
  PyObject *self = bound->self;
#if !defined(Py_GIL_DISABLED)
  if (g_kept_count < kKept) [[likely]] {
    g_kept[g_kept_count++] = bound;
    Py_DECREF(self);
    return;
  }
#endif
  PyObject_Free(o);
  Py_DECREF(self);
}

void special_dealloc(PyObject *o) {
  PyObject_Free(o);
}

PyObject *special_name(PyObject *o, void *) {
  return PyUnicode_FromString(as_special(o)->name);
}
PyObject *bound_name(PyObject *o, void *) {
  return PyUnicode_FromString(as_bound(o)->special->name);
}
PyObject *bound_self(PyObject *o, void *) {
  return Py_NewRef(as_bound(o)->self);
}
PyObject *special_repr(PyObject *o) {
  return PyUnicode_FromFormat("<method '%s' of '%s' objects>", as_special(o)->name,
                              as_special(o)->owner->tp_name);
}
PyObject *bound_repr(PyObject *o) {
  return PyUnicode_FromFormat("<method '%s' of %R>", as_bound(o)->special->name, as_bound(o)->self);
}

PyGetSetDef special_properties[] = {
    {"__name__", special_name, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyGetSetDef bound_properties[] = {
    {"__name__", bound_name, nullptr, nullptr, nullptr},
    {"__self__", bound_self, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyTypeObject SpecialType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx._binding.context_method",
    .tp_basicsize = sizeof(Special),
    .tp_dealloc = special_dealloc,
    .tp_vectorcall_offset = offsetof(Special, vectorcall),
    .tp_repr = special_repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR |
                Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_getset = special_properties,
    .tp_descr_get = special_get,
};

PyTypeObject BoundType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx._binding.bound_context_method",
    .tp_basicsize = sizeof(Bound),
    .tp_dealloc = bound_dealloc,
    .tp_vectorcall_offset = offsetof(Bound, vectorcall),
    .tp_repr = bound_repr,
    .tp_call = PyVectorcall_Call,
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .tp_getset = bound_properties,
};

bool add(PyTypeObject *type, const char *name, SpecialFunction function, bool takes_exception) {
  if (PyDict_GetItemString(type->tp_dict, name) != nullptr) {
    return true;  // the module is executed again: bound objects point at what is there
  }
  Special *special = PyObject_New(Special, &SpecialType);
  if (special == nullptr) {
    return false;
  }
  special->vectorcall = special_call;
  special->owner = type;
  special->function = function;
  special->name = name;
  special->takes_exception = takes_exception;
  // A static type cannot be assigned to from Python, but its own module may fill it in before it is used.
  const int status = PyDict_SetItemString(type->tp_dict, name, reinterpret_cast<PyObject *>(special));
  Py_DECREF(special);
  PyType_Modified(type);
  return status == 0;
}

}  // namespace

bool add_context_methods(PyTypeObject *type, SpecialFunction enter, SpecialFunction exit) {
  return PyType_Ready(&SpecialType) == 0 && PyType_Ready(&BoundType) == 0 &&
         add(type, "__enter__", enter, false) && add(type, "__exit__", exit, true);
}

}  // namespace warplens::binding
