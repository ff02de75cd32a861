// The Python type of the agent's callables.
#include "wrapper.h"

#include <string_view>

namespace warplens::agent::python {
namespace {

// Behind the head of an object.
struct Wrapper {
  Object *weak_references;
  Object *function;
  WrappedCall call;
  void *data;
};

using Visit = int (*)(Object *, void *);

Wrapper &of(Object *self) {
  return *reinterpret_cast<Wrapper *>(reinterpret_cast<char *>(self) + head_size());
}

Object *call(Object *self, Object *arguments, Object *keywords) {
  Held function(held(of(self).function));
  return of(self).call(function.get(), of(self).data, arguments, keywords);
}

Object *bind(Object *self, Object *object, Object *) {
  return object == nullptr || object == g_python.none ? held(self) : g_python.PyMethod_New(self, object);
}

// Pickled by its name, as a function is.
Object *reduce(Object *self, Object *) {
  return g_python.PyObject_GetAttrString(self, "__qualname__");
}

MethodDef g_reduce{"__reduce_ex__", reinterpret_cast<void *>(reduce), kArguments, nullptr};

Object *get(Object *self, Object *name) {
  Size size = 0;
  const char *text = g_python.PyUnicode_AsUTF8AndSize(name, &size);
  if (text == nullptr) {
    return nullptr;
  }
  std::string_view asked(text, static_cast<size_t>(size));
  if (asked == "__reduce_ex__" || asked == "__reduce__") {
    return g_python.PyCMethod_New(&g_reduce, self, nullptr, nullptr);
  }
  return g_python.PyObject_GetAttr(of(self).function, name);
}

int set(Object *self, Object *name, Object *value) {
  return g_python.PyObject_SetAttr(of(self).function, name, value);
}

Object *repr(Object *self) {
  return g_python.PyObject_Repr(of(self).function);
}

int traverse(Object *self, Visit visit, void *argument) {
  if (int stop = visit(type_of(self), argument)) {
    return stop;
  }
  return of(self).function != nullptr ? visit(of(self).function, argument) : 0;
}

int clear(Object *self) {
  Held function(of(self).function);
  of(self).function = held(g_python.none);
  return 0;
}

void release(Object *self) {
  g_python.PyObject_GC_UnTrack(self);
  if (of(self).weak_references != nullptr) {
    g_python.PyObject_ClearWeakRefs(self);
  }
  Held type(type_of(self));
  Held function(of(self).function);
  g_python.PyObject_GC_Del(self);
}

// PyMemberDef
struct Member {
  const char *name;
  int type;
  Size offset;
  int flags;
  const char *doc;
};
Member g_members[] = {{"__weaklistoffset__", 19, 0, 1, nullptr}, {}};

template <typename Function>
void *slot(Function *function) {
  return reinterpret_cast<void *>(function);
}

// Numbers of typeslots.h.
TypeSlot g_slots[] = {{50, slot(call)}, {54, slot(bind)},     {58, slot(get)},   {69, slot(set)},
                      {66, slot(repr)}, {71, slot(traverse)}, {51, slot(clear)}, {52, slot(release)},
                      {72, g_members},  {0, nullptr}};
constexpr TypeSpec g_spec{"builtins.function", 0, 0, 1u << 18 | 1u << 14, g_slots};

}  // namespace

Object *make_wrapper_type() {
  TypeSpec spec = g_spec;
  spec.size = static_cast<int>(head_size() + sizeof(Wrapper));
  g_members[0].offset = static_cast<Size>(head_size() + offsetof(Wrapper, weak_references));
  return g_python.PyType_FromSpec(&spec);
}

Object *wrap(Object *type, Object *function, WrappedCall call, void *data) {
  Object *made = g_python.PyType_GenericAlloc(type, 0);
  if (made != nullptr) {
    of(made).function = held(function);
    of(made).call = call;
    of(made).data = data;
  }
  return made;
}

}  // namespace warplens::agent::python
