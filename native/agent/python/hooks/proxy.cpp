// The Python type of proxies.
#include "proxy.h"

#include <string_view>

namespace warplens::agent::python {
namespace {

// Behind the head of an object.
struct Proxy {
  Object *object;
  const char *method;
  void (*before)(Object *argument);
  void (*after)(Object *result);
};

using Visit = int (*)(Object *, void *);

Proxy &of(Object *self) {
  return *reinterpret_cast<Proxy *>(reinterpret_cast<char *>(self) + head_size());
}

Object *call_method(Object *self, Object *arguments, Object *keywords) {
  Held method(g_python.PyObject_GetAttrString(of(self).object, of(self).method));
  if (!method) {
    return nullptr;
  }
  if (of(self).before != nullptr && g_python.PyTuple_Size(arguments) > 0) {
    of(self).before(g_python.PyTuple_GetItem(arguments, 0));
  }
  Object *result = g_python.PyObject_Call(method.get(), arguments, keywords);
  if (of(self).after != nullptr && result != nullptr) {
    of(self).after(result);
  }
  return result;
}

MethodDef g_get{"get", reinterpret_cast<void *>(call_method), kArguments | kKeywords, nullptr};
MethodDef g_put{"put", reinterpret_cast<void *>(call_method), kArguments | kKeywords, nullptr};

Object *get(Object *self, Object *name) {
  Size size = 0;
  const char *text = g_python.PyUnicode_AsUTF8AndSize(name, &size);
  if (text == nullptr) {
    return nullptr;
  }
  if (std::string_view(text, static_cast<size_t>(size)) == of(self).method) {
    return g_python.PyCMethod_New(of(self).after != nullptr ? &g_get : &g_put, self, nullptr, nullptr);
  }
  return g_python.PyObject_GetAttr(of(self).object, name);
}

int set(Object *self, Object *name, Object *value) {
  return g_python.PyObject_SetAttr(of(self).object, name, value);
}

int traverse(Object *self, Visit visit, void *argument) {
  if (int stop = visit(type_of(self), argument)) {
    return stop;
  }
  return of(self).object != nullptr ? visit(of(self).object, argument) : 0;
}

void release(Object *self) {
  g_python.PyObject_GC_UnTrack(self);
  Held type(type_of(self));
  Held object(of(self).object);
  g_python.PyObject_GC_Del(self);
}

template <typename Function>
void *slot(Function *function) {
  return reinterpret_cast<void *>(function);
}

// Numbers of typeslots.h.
TypeSlot g_slots[] = {
    {58, slot(get)}, {69, slot(set)}, {71, slot(traverse)}, {52, slot(release)}, {0, nullptr}};
constexpr TypeSpec g_spec{"builtins.queue", 0, 0, 1u << 18 | 1u << 14, g_slots};

}  // namespace

Object *make_proxy_type() {
  TypeSpec spec = g_spec;
  spec.size = static_cast<int>(head_size() + sizeof(Proxy));
  return g_python.PyType_FromSpec(&spec);
}

Object *make_proxy(Object *type, Object *object, const char *method, void (*after)(Object *result),
                   void (*before)(Object *argument)) {
  Object *made = g_python.PyType_GenericAlloc(type, 0);
  if (made != nullptr) {
    of(made).object = held(object);
    of(made).method = method;
    of(made).after = after;
    of(made).before = before;
  }
  return made;
}

}  // namespace warplens::agent::python
