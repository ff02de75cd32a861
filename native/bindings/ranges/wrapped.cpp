// The type of decorated functions.
#include "wrapped.h"

#include <cstddef>

#include "annotate.h"
#include "event.h"

namespace warplens::binding {

namespace {

struct Wrapped {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *function;
  bool is_function;  // exactly a Python function
  Event event;
  PyObject *dict;
  PyObject *weak;
};

Wrapped *as_wrapped(PyObject *o) {
  return reinterpret_cast<Wrapped *>(o);
}

inline PyObject *call(Wrapped *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  if (self->is_function) [[likely]] {
    return reinterpret_cast<PyFunctionObject *>(self->function)
        ->vectorcall(self->function, args, nargsf, kwnames);
  }
  return PyObject_Vectorcall(self->function, args, nargsf, kwnames);
}

PyObject *wrapped_call(PyObject *o, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
  Wrapped *self = as_wrapped(o);
  // Asked anew for every call, so a tool that attaches later sees functions that were decorated before it came.
  const int32_t state = listener();
  if (state == 0) [[likely]] {
    return call(self, args, nargsf, kwnames);
  }
  PyThreadState *thread = thread_state();
  push(&self->event, state, thread);
  const uint32_t told = t_task.told;
  PyObject *result = call(self, args, nargsf, kwnames);
  if ((told | t_task.told) == 0) [[likely]] {  // no task then and none since: nothing to tell
    --t_task.pushes;
    nvtxDomainRangePop(handle_for(self->event.domain, state));
  } else {
    pop(self->event.domain, state, nullptr, thread);
  }
  return result;
}

PyObject *wrapped_get(PyObject *self, PyObject *object, PyObject *) {
  if (object == nullptr || object == Py_None) {
    return Py_NewRef(self);
  }
  return PyMethod_New(self, object);
}

// What the wrapper does not have itself (__code__, __defaults__, attributes set on the function later) is the function's.
PyObject *wrapped_getattr(PyObject *self, PyObject *name) {
  PyObject *value = PyObject_GenericGetAttr(self, name);
  if (value != nullptr || !PyErr_ExceptionMatches(PyExc_AttributeError)) {
    return value;
  }
  PyErr_Clear();
  return PyObject_GetAttr(as_wrapped(self)->function, name);
}

PyObject *wrapped_repr(PyObject *self) {
  return PyUnicode_FromFormat("<annotated %R>", as_wrapped(self)->function);
}

PyObject *wrapped_reduce(PyObject *self, PyObject *) {
  PyObject *module = PyImport_ImportModule("warplens.nvtx._decorate");
  if (module == nullptr) {
    return nullptr;
  }
  PyObject *reduced = PyObject_CallMethod(module, "reduce", "O", self);
  Py_DECREF(module);
  return reduced;
}

// The annotation that would make this wrapper again.
PyObject *wrapped_annotation(PyObject *self, void *) {
  Event &e = as_wrapped(self)->event;
  return PyObject_CallFunction(reinterpret_cast<PyObject *>(&AnnotateType), "(NNNNN)",
                               none_if_null(e.message), none_if_null(e.color), none_if_null(e.domain->name),
                               none_if_null(e.category), none_if_null(e.payload));
}

int wrapped_traverse(PyObject *o, visitproc visit, void *arg) {
  Wrapped *self = as_wrapped(o);
  Py_VISIT(self->function);
  Py_VISIT(self->dict);
  Py_VISIT(self->event.payload);
  return 0;
}

int wrapped_clear(PyObject *o) {
  Wrapped *self = as_wrapped(o);
  // The function stays: a call may still be running in it, and the cycle is broken by the rest.
  Py_CLEAR(self->dict);
  Py_CLEAR(self->event.payload);
  return 0;
}

void wrapped_dealloc(PyObject *o) {
  Wrapped *self = as_wrapped(o);
  PyObject_GC_UnTrack(o);
  if (self->weak != nullptr) {
    PyObject_ClearWeakRefs(o);
  }
  Py_CLEAR(self->dict);
  Py_CLEAR(self->function);
  clear_event(&self->event);
  PyObject_GC_Del(o);
}

PyMethodDef methods[] = {
    {"__reduce__", wrapped_reduce, METH_NOARGS, "Pickles by reference, as functions do."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"__annotation__", wrapped_annotation, nullptr, "The annotate object that describes the range.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

PyTypeObject WrappedType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx._binding.annotated_function",
    .tp_basicsize = sizeof(Wrapped),
    .tp_dealloc = wrapped_dealloc,
    .tp_vectorcall_offset = offsetof(Wrapped, vectorcall),
    .tp_repr = wrapped_repr,
    .tp_call = PyVectorcall_Call,
    .tp_getattro = wrapped_getattr,
    .tp_flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
    .tp_doc = "A function whose calls are ranges.",
    .tp_traverse = wrapped_traverse,
    .tp_clear = wrapped_clear,
    .tp_weaklistoffset = offsetof(Wrapped, weak),
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_descr_get = wrapped_get,
    .tp_dictoffset = offsetof(Wrapped, dict),
};

PyObject *wrap(PyObject *, PyObject *const *args, Py_ssize_t nargs) {
  if (nargs != 3 || !PyObject_TypeCheck(args[0], &AnnotateType) || !PyCallable_Check(args[1]) ||
      !PyUnicode_CheckExact(args[2])) {
    PyErr_SetString(PyExc_TypeError, "wrap(annotation, func, name) needs an annotate, a callable and a str");
    return nullptr;
  }
  const Said from(&reinterpret_cast<Annotate *>(args[0])->event);
  Wrapped *self = PyObject_GC_New(Wrapped, &WrappedType);
  if (self == nullptr) {
    return nullptr;
  }
  self->vectorcall = wrapped_call;
  self->function = Py_NewRef(args[1]);
  self->is_function = PyFunction_Check(args[1]);
  self->dict = nullptr;
  self->weak = nullptr;
  init_event(&self->event, from.domain, from.message != nullptr ? from.message : args[2]);
  self->event.argb = from.argb;
  self->event.color = Py_XNewRef(from.color);
  self->event.category = Py_XNewRef(from.category);
  self->event.payload = Py_XNewRef(from.payload);
  PyObject_GC_Track(reinterpret_cast<PyObject *>(self));
  return reinterpret_cast<PyObject *>(self);
}

}  // namespace warplens::binding
