// The Python type Domain.
#include "bindings/payloads/counter.h"
#include "bindings/ranges/annotate.h"
#include "bindings/ranges/event.h"
#include "bindings/values/arguments.h"
#include "bindings/values/attributes.h"
#include "bindings/values/string_cache.h"
#include "domain.h"
#include "end_functions.h"
#include "objects.h"

namespace warplens::binding {

namespace {

const Signature g_get_attributes("get_event_attributes", 4, 0, {"message", "color", "category", "payload"});
const Signature g_set_attributes("set_event_attributes", 1, 1,
                                 {"attributes", "message", "color", "category", "payload"});
const Signature g_domain_mark("mark", 1, 0, {"attributes", "message", "color", "category", "payload"});
const Signature g_domain_push("push_range", 1, 0, {"attributes", "message", "color", "category", "payload"});
const Signature g_domain_start("start_range", 1, 0,
                               {"attributes", "message", "color", "category", "payload"});
const Signature g_domain_pop("pop_range", 0, 0, {"message", "color", "category", "payload"});
const Signature g_domain_end("end_range", 1, 1, {"range_id", "message", "color", "category", "payload"});
const Signature g_domain_annotate("annotate", 2, 0, {"message", "color", "category", "payload"});
const Signature g_domain_start_end("start_end_range", 2, 0, {"message", "color", "category", "payload"});
const Signature g_domain_name_category("name_category", 2, 2, {"id", "name"});

Domain *as_domain(PyObject *o) {
  return reinterpret_cast<Domain *>(o);
}

bool is_attributes(PyObject *o, const char *function) {
  if (Py_IS_TYPE(o, &EventAttributesType)) {
    return true;
  }
  PyErr_Format(PyExc_TypeError, "%s() needs attributes made by Domain.get_event_attributes(), not %.100s",
               function, Py_TYPE(o)->tp_name);
  return false;
}

bool update(PyObject *attributes, PyObject *const *values) {
  Event *event = &event_of(attributes);
  const bool done = (values[0] == nullptr || set_message(event, message_text(values[0]))) &&
                    (values[1] == nullptr || set_color(event, values[1])) &&
                    (values[2] == nullptr || set_category(event, values[2]));
  if (done && values[3] != nullptr) {
    set_payload(event, values[3]);
    track_payload(guard_of(attributes), event);
  }
  return done;
}

// The attributes that a call means: those given, changed by its keywords, or new ones made of the keywords. Attributes
// of another domain are copied, for handles are the domain's own. New reference.
PyObject *meant(Domain *domain, PyObject *const *values, const char *function) {
  PyObject *attributes = given(values[0]);
  if (attributes == nullptr) {
    return make_attributes(domain, {values[1], values[2], nullptr, values[3], values[4]});
  }
  if (!is_attributes(attributes, function)) {
    return nullptr;
  }
  bool done = true;
  if (values[1] != nullptr || values[2] != nullptr || values[3] != nullptr || values[4] != nullptr) {
    WARPLENS_LOCK(guard_of(attributes));
    done = update(attributes, values + 1);
    WARPLENS_UNLOCK();
  }
  if (!done) {
    return nullptr;
  }
  const Event &event = event_of(attributes);
  if (event.domain == domain) {
    return Py_NewRef(attributes);
  }
  const HeldArguments held(attributes);
  return make_attributes(domain, held.arguments);
}

// Sends an event; what `Send` returns comes back as its result in Python.
template <PyObject *(*Send)(Event *, int32_t), PyObject *(*Silent)()>
PyObject *event_method(const Signature &signature, PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                       PyObject *kwnames) {
  const int32_t state = listener();
  const bool plain = kwnames == nullptr && nargs == 1 && Py_IS_TYPE(args[0], &EventAttributesType) &&
                     event_of(args[0]).domain == as_domain(self);
  if (plain && state == 0) {
    return Silent();
  }
  PyObject *attributes = nullptr;
  if (plain) [[likely]] {
    attributes = Py_NewRef(args[0]);
  } else {
    Values<5> values;
    if (!values.read(signature, args, nargs, kwnames) ||
        (attributes = meant(as_domain(self), values.at, signature.function())) == nullptr) {
      return nullptr;
    }
  }
  PyObject *result = nullptr;
  if (state == 0) {
    result = Silent();
  } else {
    WARPLENS_LOCK(guard_of(attributes));
    result = Send(&event_of(attributes), state);
    WARPLENS_UNLOCK();
  }
  Py_DECREF(attributes);
  return result;
}

PyObject *silent_none() {
  Py_RETURN_NONE;
}
PyObject *silent_zero() {
  return PyLong_FromLong(0);
}
PyObject *send_start(Event *event, int32_t state) {
  return PyLong_FromUnsignedLongLong(start(event, state));
}

PyObject *domain_mark(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return event_method<send_mark, silent_none>(g_domain_mark, self, args, nargs, kwnames);
}

PyObject *domain_push(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return event_method<send_push, silent_none>(g_domain_push, self, args, nargs, kwnames);
}

PyObject *domain_start(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return event_method<send_start, silent_zero>(g_domain_start, self, args, nargs, kwnames);
}

PyObject *domain_pop(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  const int32_t state = listener();
  if (nargs == 0 && kwnames == nullptr) [[likely]] {
    if (state == 0) {
      Py_RETURN_NONE;
    }
    return depth_or_none(pop(as_domain(self), state));
  }
  Values<4> values;
  if (!values.read(g_domain_pop, args, nargs, kwnames)) {
    return nullptr;
  }
  return pop_with_attributes(as_domain(self), state, values.at);
}

PyObject *domain_end(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<5> values;
  if (!values.read(g_domain_end, args, nargs, kwnames)) {
    return nullptr;
  }
  PyObject *id = values[0];
  if (!PyIndex_Check(id)) {
    PyErr_SetString(PyExc_TypeError, "end_range() needs the int that Domain.start_range() returned");
    return nullptr;
  }
  PyObject *number = PyNumber_Index(id);
  if (number == nullptr) {
    return nullptr;
  }
  const unsigned long long value = PyLong_AsUnsignedLongLongMask(number);
  Py_DECREF(number);
  return end_with_attributes(as_domain(self), listener(), value, values.at + 1);
}

PyObject *domain_annotate(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<4> values;
  if (!values.read(g_domain_annotate, args, nargs, kwnames)) {
    return nullptr;
  }
  PyObject *first = values[0];
  if (first != nullptr && Py_IS_TYPE(first, &EventAttributesType)) {
    const HeldArguments held(first);
    return make_annotate(as_domain(self), held.arguments);
  }
  return make_annotate(as_domain(self), {message_text(first), values[1], nullptr, values[2], values[3]});
}

PyObject *domain_start_end(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<4> values;
  if (!values.read(g_domain_start_end, args, nargs, kwnames)) {
    return nullptr;
  }
  PyObject *module = PyImport_ImportModule("warplens.nvtx._ranges");
  PyObject *type = module != nullptr ? PyObject_GetAttrString(module, "start_end_range") : nullptr;
  PyObject *made = type != nullptr
                       ? PyObject_CallFunction(type, "NNNNN", none_if_null(message_text(values[0])),
                                               none_if_null(values[1]), none_if_null(as_domain(self)->name),
                                               none_if_null(values[2]), none_if_null(values[3]))
                       : nullptr;
  Py_XDECREF(type);
  Py_XDECREF(module);
  return made;
}

PyObject *domain_name_category(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<2> values;
  if (!values.read(g_domain_name_category, args, nargs, kwnames)) {
    return nullptr;
  }
  return name_category(as_domain(self), values[0], values[1]);
}

PyObject *domain_destroy(PyObject *self, PyObject *) {
  return PyBool_FromLong(destroy(as_domain(self)));
}

PyObject *domain_enter(PyObject *self, PyObject *) {
  WARPLENS_LOCK(self);
  ++as_domain(self)->scopes;
  WARPLENS_UNLOCK();
  return Py_NewRef(self);
}

PyObject *domain_exit(PyObject *self, PyObject *) {
  WARPLENS_LOCK(self);
  as_domain(self)->scopes -= as_domain(self)->scopes > 0;
  WARPLENS_UNLOCK();
  const KeptError error;
  destroy(as_domain(self));
  Py_RETURN_FALSE;
}

PyObject *domain_string(PyObject *self, PyObject *text) {
  return make_registered_string(as_domain(self), text);
}

PyObject *domain_category(PyObject *self, PyObject *name) {
  PyObject *text = text_argument(name, "name");
  if (text == nullptr) {
    return nullptr;
  }
  const int32_t state = listener();
  if (state > 0) {
    handle_for(as_domain(self), state);
  }
  const uint32_t id = category_named(as_domain(self), text, state);
  Py_DECREF(text);
  return PyLong_FromUnsignedLong(id);
}

PyObject *domain_get_attributes(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<4> values;
  if (!values.read(g_get_attributes, args, nargs, kwnames)) {
    return nullptr;
  }
  return make_attributes(as_domain(self), {values[0], values[1], nullptr, values[2], values[3]});
}

PyObject *domain_set_attributes(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<5> values;
  if (!values.read(g_set_attributes, args, nargs, kwnames) ||
      !is_attributes(values[0], "set_event_attributes")) {
    return nullptr;
  }
  bool done = false;
  WARPLENS_LOCK(guard_of(values[0]));
  done = update(values[0], values.at + 1);
  WARPLENS_UNLOCK();
  if (!done) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject *domain_name(PyObject *self, void *) {
  return none_if_null(as_domain(self)->name);
}

PyObject *domain_repr(PyObject *self) {
  PyObject *name = as_domain(self)->name;
  return PyUnicode_FromFormat("<Domain %R>", name != nullptr ? name : Py_None);
}

PyObject *domain_reduce(PyObject *self, PyObject *) {
  return Py_BuildValue("(O(N))", Py_TYPE(self), none_if_null(as_domain(self)->name));
}

PyObject *domain_new(PyTypeObject *, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"name", nullptr};
  PyObject *name = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:Domain", const_cast<char **>(names), &name)) {
    return nullptr;
  }
  Domain *domain = domain_named(name);
  return domain == nullptr ? nullptr : Py_NewRef(reinterpret_cast<PyObject *>(domain));
}

void domain_dealloc(PyObject *o) {
  // Reached only where making one failed: the registry keeps every domain that was made.
  Domain *self = as_domain(o);
  Py_CLEAR(self->name);
  Py_CLEAR(self->strings);
  Py_CLEAR(self->categories);
  PyObject_Free(o);
}

constexpr int kFast = METH_FASTCALL | METH_KEYWORDS;

PyMethodDef methods[] = {
    {"mark", method(domain_mark), kFast,
     "mark($self, /, attributes=None, *, message=None, color=None, category=None, payload=None)\n--\n\n"
     "Marks an instant. Keywords change `attributes`, or make new ones."},
    {"push_range", method(domain_push), kFast,
     "push_range($self, /, attributes=None, *, message=None, color=None, category=None, payload=None)\n--\n\n"
     "Opens a range on this thread. Returns its depth from 0 where a tool tells it, else None."},
    {"pop_range", method(domain_pop), kFast,
     "pop_range($self, /, *, message=None, color=None, category=None, payload=None)\n--\n\n"
     "Closes the innermost range of this thread; what is given overrides what the range said when it began. "
     "Returns the "
     "depth that is left, or None."},
    {"start_range", method(domain_start), kFast,
     "start_range($self, /, attributes=None, *, message=None, color=None, category=None, "
     "payload=None)\n--\n\n"
     "Opens a range that any thread may close. Returns its id for end_range(), 0 where no tool listens."},
    {"end_range", method(domain_end), kFast,
     "end_range($self, /, range_id, *, message=None, color=None, category=None, payload=None)\n--\n\n"
     "Closes a range by the id that start_range() returned; what else is given overrides what it said when "
     "it began."},
    {"annotate", method(domain_annotate), kFast,
     "annotate($self, /, message=None, color=None, *, category=None, payload=None)\n--\n\n"
     "A range around a with block or a function, as nvtx.annotate. Attributes of get_event_attributes() may "
     "take the "
     "message's place."},
    {"start_end_range", method(domain_start_end), kFast,
     "start_end_range($self, /, message=None, color=None, *, category=None, payload=None)\n--\n\n"
     "A start/end range around a with block, as nvtx.start_end_range."},
    {"create_resource", method(domain_create_resource), kFast,
     "create_resource($self, /, name, identifier, kind='pointer')\n--\n\n"
     "Tells tools of something: `identifier` is its address or handle, `kind` says which: 'pointer', "
     "'handle', "
     "'thread', 'pthread' or NVTX's number of another one."},
    {"create_sync", method(domain_create_sync), kFast,
     "create_sync($self, /, name)\n--\n\nTells tools of something that threads wait for."},
    {"name_category", method(domain_name_category), kFast,
     "name_category($self, /, id, name)\n--\n\nNames a category by its number; events take it by either."},
    {"destroy", domain_destroy, METH_NOARGS,
     "destroy($self, /)\n--\n\n"
     "Tells the tool that the domain is done with. Does nothing where annotations, attributes or counters of "
     "the domain "
     "are still around. The object may be used again. Returns True if the tool received it."},
    {"__enter__", domain_enter, METH_NOARGS, "Itself."},
    {"__exit__", domain_exit, METH_VARARGS, "Destroys the domain, unless something still uses it."},
    {"get_registered_string", domain_string, METH_O,
     "get_registered_string($self, string, /)\n--\n\nThe message `string`, known to this domain."},
    {"get_category_id", domain_category, METH_O,
     "get_category_id($self, name, /)\n--\n\nThe number of the category `name`; new names get the next "
     "number."},
    {"get_event_attributes", method(domain_get_attributes), kFast,
     "get_event_attributes($self, /, message=None, color=None, category=None, payload=None)\n--\n\n"
     "What an event says, made once, to be sent often."},
    {"set_event_attributes", method(domain_set_attributes), kFast,
     "set_event_attributes($self, /, attributes, *, message=None, color=None, category=None, "
     "payload=None)\n--\n\n"
     "Changes the attributes that are given; the others stay."},
    {"get_counter", method(domain_get_counter), kFast,
     "get_counter($self, /, name, dtype, *, description=None, scope=None, semantics=None, "
     "time_domain=None)\n--\n\n"
     "The counter `name`: the same object for the same arguments.\n\n"
     "dtype: int, float, a NumPy dtype, or a dict of names and types for a group of counters.\n"
     "description: a longer text.\n"
     "scope: what it belongs to, a path or a PredefinedScope.\n"
     "semantics: CounterSemantics of the whole counter.\n"
     "time_domain: the clock of batches, a TimestampType; the tool's own by default."},
    {"get_timestamp", domain_get_timestamp, METH_NOARGS,
     "get_timestamp($self, /)\n--\n\nNow, by the tool's clock, for batches of samples; 0 where no tool "
     "listens."},
    {"__reduce__", domain_reduce, METH_NOARGS, "Pickles as its name."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef properties[] = {
    {"name", domain_name, nullptr, "The name, None for the default domain.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

PyTypeObject DomainType = {
    .ob_base = PyVarObject_HEAD_INIT(nullptr, 0).tp_name = "warplens.nvtx.Domain",
    .tp_basicsize = sizeof(Domain),
    .tp_dealloc = domain_dealloc,
    .tp_repr = domain_repr,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_doc =
        "Domain(name=None)\n--\n\nThe domain `name`: the same object for the same name, for the life of the "
        "process.",
    .tp_methods = methods,
    .tp_getset = properties,
    .tp_new = domain_new,
};

}  // namespace warplens::binding
