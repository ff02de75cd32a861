// Registers layouts and enumerations with a domain's tool, once each.
#include "schemas.h"

#include <nvtx3/nvToolsExtCounters.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstring>
#include <initializer_list>
#include <new>

#include "bindings/values/string_cache.h"
#include "semantics.h"

namespace warplens::binding {

namespace {

constexpr const char *kModule = "warplens.nvtx._layouts";
constexpr int kDtypeSlots = 32;
constexpr Py_ssize_t kMaxLayouts = 4096;  // registered from tuples; more are sent without a layout
constexpr Py_ssize_t kMaxEntries = 1024;

struct DictSchema {
  uint64_t schema;
  uint32_t fixed;
  uint32_t count;
  PyObject **keys;
  Kind *kinds;
  uint32_t *offsets;
  uint64_t hash;
};

struct DtypeSlot {
  PyObject *dtype;
  int dimensions;
  ArrayLayout layout;
};

}  // namespace

struct Schemas {
  uint64_t builtin[static_cast<int>(Builtin::count)];
  uint64_t arrays[kKinds][kMaxDimensions + 1];
  DtypeSlot dtypes[kDtypeSlots];
  PyObject *by_layout;  // tuple -> int
  PyObject *scopes;     // str -> int
  DictSchema dicts[kMaxDictSchemas];
  int dict_count;
  uint16_t dict_slots[1024];  // hash -> index + 1 of the last one found there
};

namespace {

// Memory of one call's strings and structures, freed together.
class Arena {
 public:
  Arena() = default;
  ~Arena() {
    while (first_ != nullptr) {
      Block *next = first_->next;
      PyMem_Free(first_);
      first_ = next;
    }
    Py_XDECREF(holders_);
  }
  Arena(const Arena &) = delete;
  Arena &operator=(const Arena &) = delete;

  template <typename T>
  T *make(size_t n = 1) {
    Block *block = static_cast<Block *>(PyMem_Calloc(1, sizeof(Block) + n * sizeof(T)));
    if (block == nullptr) {
      return nullptr;
    }
    block->next = first_;
    first_ = block;
    return reinterpret_cast<T *>(block + 1);
  }

  // UTF-8 of a str, or null for None.
  const char *text(PyObject *o) {
    if (o == Py_None || !PyUnicode_Check(o)) {
      return nullptr;
    }
    PyObject *holder = nullptr;
    const char *at = utf8(o, &holder);
    if (holder != nullptr) {
      if (holders_ == nullptr) {
        holders_ = PyList_New(0);
      }
      if (holders_ == nullptr || PyList_Append(holders_, holder) < 0) {
        PyErr_Clear();
        at = "?";
      }
      Py_DECREF(holder);
    }
    return at;
  }

 private:
  struct alignas(16) Block {
    Block *next;
  };
  Block *first_ = nullptr;
  PyObject *holders_ = nullptr;
};

uint64_t number(PyObject *o) {
  return PyLong_AsUnsignedLongLongMask(o);
}

Schemas *schemas_of(Domain *domain) {
  if (domain->schemas == nullptr) {
    auto *made = static_cast<Schemas *>(PyMem_RawCalloc(1, sizeof(Schemas)));
    __atomic_store_n(&domain->schemas, made, __ATOMIC_RELEASE);
  }
  return domain->schemas;
}

uint64_t register_enum(Domain *domain, PyObject *layout) {
  Arena arena;
  PyObject *entries = PyTuple_GET_ITEM(layout, 3);
  const Py_ssize_t n = PyTuple_GET_SIZE(entries);
  auto *made = arena.make<nvtxPayloadEnum_t>(static_cast<size_t>(n));
  if (made == nullptr) {
    return 0;
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject *entry = PyTuple_GET_ITEM(entries, i);
    made[i] = {arena.text(PyTuple_GET_ITEM(entry, 0)), number(PyTuple_GET_ITEM(entry, 1)), 0};
  }
  nvtxPayloadEnumAttr_t attributes = {};
  attributes.fieldMask = NVTX_PAYLOAD_ENUM_ATTR_FIELD_NAME | NVTX_PAYLOAD_ENUM_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_ENUM_ATTR_FIELD_NUM_ENTRIES | NVTX_PAYLOAD_ENUM_ATTR_FIELD_SIZE;
  attributes.name = arena.text(PyTuple_GET_ITEM(layout, 1));
  attributes.sizeOfEnum = number(PyTuple_GET_ITEM(layout, 2));
  attributes.entries = made;
  attributes.numEntries = static_cast<size_t>(n);
  return nvtxPayloadEnumRegister(domain->handle, &attributes);
}

uint64_t register_entries(Domain *domain, const char *name, uint64_t type, uint64_t flags, size_t size,
                          const nvtxPayloadSchemaEntry_t *entries, size_t count) {
  nvtxPayloadSchemaAttr_t attributes = {};
  attributes.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                         NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES;
  if (name != nullptr) {
    attributes.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME;
    attributes.name = name;
  }
  if (flags != 0) {
    attributes.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_FLAGS;
    attributes.flags = flags;
  }
  if (type == NVTX_PAYLOAD_SCHEMA_TYPE_STATIC) {
    attributes.fieldMask |= NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE;
    attributes.payloadStaticSize = size;
  }
  attributes.type = type;
  attributes.entries = entries;
  attributes.numEntries = count;
  return nvtxPayloadSchemaRegister(domain->handle, &attributes);
}

uint64_t layout_locked(Domain *domain, PyObject *layout);

bool is_enum(PyObject *layout) {
  return PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(layout, 0), "enum") == 0;
}

// The integer that holds an enumeration, for tools that take none.
uint64_t plain_type(size_t size) {
  return size == 1   ? NVTX_PAYLOAD_ENTRY_TYPE_UINT8
         : size == 2 ? NVTX_PAYLOAD_ENTRY_TYPE_UINT16
         : size == 4 ? NVTX_PAYLOAD_ENTRY_TYPE_UINT32
                     : NVTX_PAYLOAD_ENTRY_TYPE_UINT64;
}

// ("schema", name, type, flags, size, entries); an entry is (name, type, flags, array, offset, semantics), its type a
// number of NVTX or a layout.
uint64_t register_schema(Domain *domain, PyObject *layout) {
  Arena arena;
  PyObject *entries = PyTuple_GET_ITEM(layout, 5);
  const Py_ssize_t n = PyTuple_GET_SIZE(entries);
  auto *made = arena.make<nvtxPayloadSchemaEntry_t>(static_cast<size_t>(n));
  auto *semantics = arena.make<nvtxSemanticsCounter_t>(static_cast<size_t>(n));
  if (made == nullptr || semantics == nullptr || n > kMaxEntries) {
    return 0;
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject *entry = PyTuple_GET_ITEM(entries, i);
    PyObject *type = PyTuple_GET_ITEM(entry, 1);
    made[i].name = arena.text(PyTuple_GET_ITEM(entry, 0));
    made[i].type = PyTuple_Check(type) ? layout_locked(domain, type) : number(type);
    made[i].flags = number(PyTuple_GET_ITEM(entry, 2));
    made[i].arrayOrUnionDetail = number(PyTuple_GET_ITEM(entry, 3));
    made[i].offset = number(PyTuple_GET_ITEM(entry, 4));
    PyObject *meaning = PyTuple_GET_ITEM(entry, 5);
    if (meaning != Py_None && read_semantics(meaning, &semantics[i])) {
      made[i].semantics = &semantics[i].header;
    }
    if (made[i].type == 0 && PyTuple_Check(type) && is_enum(type)) {
      made[i].type = plain_type(number(PyTuple_GET_ITEM(type, 2)));
    }
    if (made[i].type == 0) {
      return 0;
    }
  }
  return register_entries(domain, arena.text(PyTuple_GET_ITEM(layout, 1)),
                          number(PyTuple_GET_ITEM(layout, 2)), number(PyTuple_GET_ITEM(layout, 3)),
                          number(PyTuple_GET_ITEM(layout, 4)), made, static_cast<size_t>(n));
}

uint64_t layout_locked(Domain *domain, PyObject *layout) {
  Schemas *all = schemas_of(domain);
  if (all == nullptr || (all->by_layout == nullptr && (all->by_layout = PyDict_New()) == nullptr)) {
    swallow_error();
    return 0;
  }
  if (PyObject *known = find_in(all->by_layout, layout); known != nullptr) {
    const uint64_t id = number(known);
    Py_DECREF(known);
    return id;
  }
  if (PyDict_GET_SIZE(all->by_layout) >= kMaxLayouts) {
    return 0;
  }
  const uint64_t id = is_enum(layout) ? register_enum(domain, layout) : register_schema(domain, layout);
  PyObject *kept = PyLong_FromUnsignedLongLong(id);
  if (kept == nullptr || PyDict_SetItem(all->by_layout, layout, kept) < 0) {
    swallow_error();
  }
  Py_XDECREF(kept);
  return id;
}

uint64_t described(Domain *domain, PyObject *layout) {
  if (layout == nullptr || !PyTuple_Check(layout)) {
    return 0;
  }
  return layout_locked(domain, layout);
}

PyObject *module_attribute(const char *name) {
  PyObject *module = PyImport_ImportModule(kModule);
  PyObject *value = module != nullptr ? attribute(module, name) : nullptr;
  Py_XDECREF(module);
  if (value == nullptr) {
    swallow_error();
  }
  return value;
}

constexpr const char *kBuiltinNames[] = {"JSON", "TEXT", "BOOL", "TRUTH", "COMPLEX64", "COMPLEX128", "RANGE"};

uint64_t builtin_locked(Domain *domain, Builtin which) {
  Schemas *all = schemas_of(domain);
  if (all == nullptr) {
    return 0;
  }
  uint64_t id = all->builtin[static_cast<int>(which)];
  if (id == 0) {
    PyObject *layout = module_attribute(kBuiltinNames[static_cast<int>(which)]);
    id = described(domain, layout);
    __atomic_store_n(&all->builtin[static_cast<int>(which)], id, __ATOMIC_RELAXED);
    Py_XDECREF(layout);
  }
  return id;
}

uint64_t array_locked(Domain *domain, Kind element, int dimensions) {
  Schemas *all = schemas_of(domain);
  if (all == nullptr) {
    return 0;
  }
  uint64_t &id = all->arrays[static_cast<int>(element)][dimensions];
  if (id == 0) {
    PyObject *kind = PyLong_FromLong(static_cast<long>(element));
    PyObject *rank = PyLong_FromLong(dimensions);
    PyObject *layout = kind != nullptr && rank != nullptr ? ask_layouts("array", kind, rank) : nullptr;
    id = described(domain, layout);
    Py_XDECREF(layout);
    Py_XDECREF(rank);
    Py_XDECREF(kind);
  }
  return id;
}

// of_dtype() answers (layout or None, kind, as_is).
ArrayLayout ask_dtype(Domain *domain, PyObject *dtype, int dimensions) {
  ArrayLayout out;
  PyObject *rank = PyLong_FromLong(dimensions);
  PyObject *answer = rank != nullptr ? ask_layouts("of_dtype", dtype, rank) : nullptr;
  Py_XDECREF(rank);
  if (answer == nullptr || !PyTuple_Check(answer) || PyTuple_GET_SIZE(answer) != 3) {
    Py_XDECREF(answer);
    out.json = true;
    return out;
  }
  PyObject *layout = PyTuple_GET_ITEM(answer, 0);
  const uint64_t kind = number(PyTuple_GET_ITEM(answer, 1));
  out.json = layout == Py_None;
  out.schema = out.json ? 0 : described(domain, layout);
  out.scalar = kind < kKinds ? static_cast<Kind>(kind) : Kind::none;
  out.as_is = PyTuple_GET_ITEM(answer, 2) == Py_True;
  Py_DECREF(answer);
  return out;
}

ArrayLayout dtype_locked(Domain *domain, PyObject *dtype, int dimensions) {
  Schemas *all = schemas_of(domain);
  if (all == nullptr) {
    return {};
  }
  DtypeSlot &slot =
      all->dtypes[((reinterpret_cast<uintptr_t>(dtype) >> 5) + static_cast<uintptr_t>(dimensions)) %
                  kDtypeSlots];
  if (slot.dtype == dtype && slot.dimensions == dimensions) {
    return slot.layout;
  }
  const ArrayLayout layout = ask_dtype(domain, dtype, dimensions);
  PyObject *old = slot.dtype;
  slot = {Py_NewRef(dtype), dimensions, layout};
  Py_XDECREF(old);
  return layout;
}

bool same_dict(const DictSchema &known, PyObject *const *keys, const Kind *kinds, int count, uint64_t hash) {
  if (known.hash != hash || known.count != static_cast<uint32_t>(count) ||
      std::memcmp(known.kinds, kinds, static_cast<size_t>(count)) != 0) {
    return false;
  }
  for (int i = 0; i < count; ++i) {
    if (known.keys[i] != keys[i] && PyUnicode_Compare(known.keys[i], keys[i]) != 0) {
      return false;
    }
  }
  return true;
}

constexpr uint64_t kEntryTypes[kKinds] = {
    0,
    0,
    NVTX_PAYLOAD_ENTRY_TYPE_INT8,
    NVTX_PAYLOAD_ENTRY_TYPE_UINT8,
    NVTX_PAYLOAD_ENTRY_TYPE_INT16,
    NVTX_PAYLOAD_ENTRY_TYPE_UINT16,
    NVTX_PAYLOAD_ENTRY_TYPE_INT32,
    NVTX_PAYLOAD_ENTRY_TYPE_UINT32,
    NVTX_PAYLOAD_ENTRY_TYPE_INT64,
    NVTX_PAYLOAD_ENTRY_TYPE_UINT64,
    NVTX_PAYLOAD_ENTRY_TYPE_FLOAT16,
    NVTX_PAYLOAD_ENTRY_TYPE_FLOAT32,
    NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64,
    0,
    0,
    NVTX_PAYLOAD_ENTRY_TYPE_BYTE,
    NVTX_PAYLOAD_ENTRY_TYPE_CSTRING_UTF8,
};

uint64_t entry_type(Domain *domain, Kind kind) {
  switch (kind) {
    case Kind::boolean:
      if (const uint64_t truth = builtin_locked(domain, Builtin::truth); truth != 0) {
        return truth;
      }
      return plain_type(1);
    case Kind::complex64:
      return builtin_locked(domain, Builtin::complex64);
    case Kind::complex128:
      return builtin_locked(domain, Builtin::complex128);
    default:
      return kEntryTypes[static_cast<int>(kind)];
  }
}

bool make_dict_schema(Domain *domain, DictSchema *out, PyObject *const *keys, const Kind *kinds, int count,
                      uint64_t hash) {
  const size_t n = static_cast<size_t>(count);
  out->keys = static_cast<PyObject **>(PyMem_RawCalloc(n + 1, sizeof(PyObject *)));
  out->kinds = static_cast<Kind *>(PyMem_RawCalloc(n + 1, sizeof(Kind)));
  out->offsets = static_cast<uint32_t *>(PyMem_RawCalloc(n + 1, sizeof(uint32_t)));
  Arena arena;
  auto *entries = arena.make<nvtxPayloadSchemaEntry_t>(n);
  if (out->keys == nullptr || out->kinds == nullptr || out->offsets == nullptr || entries == nullptr) {
    return false;
  }
  uint32_t size = 0;
  uint32_t widest = 1;
  size_t at = 0;
  // Texts come last: what has a fixed size keeps a fixed place.
  for (const bool texts : {false, true}) {
    for (int i = 0; i < count; ++i) {
      if ((kinds[i] == Kind::text) != texts) {
        continue;
      }
      nvtxPayloadSchemaEntry_t &entry = entries[at++];
      entry.name = arena.text(keys[i]);
      entry.type = entry_type(domain, kinds[i]);
      if (entry.type == 0) {
        return false;
      }
      if (texts) {
        entry.flags = NVTX_PAYLOAD_ENTRY_FLAG_ARRAY_ZERO_TERMINATED;
        continue;
      }
      const uint32_t bytes = static_cast<uint32_t>(size_of(kinds[i]));
      const uint32_t align = kinds[i] == Kind::complex128 ? 8 : kinds[i] == Kind::complex64 ? 4 : bytes;
      size = (size + align - 1) & ~(align - 1);
      widest = align > widest ? align : widest;
      out->offsets[i] = size;
      entry.offset = size;
      size += bytes;
    }
  }
  bool any_text = false;
  for (int i = 0; i < count; ++i) {
    any_text = any_text || kinds[i] == Kind::text;
  }
  if (!any_text) {
    size = (size + widest - 1) & ~(widest - 1);
  }
  out->schema = register_entries(
      domain, "dict", any_text ? NVTX_PAYLOAD_SCHEMA_TYPE_DYNAMIC : NVTX_PAYLOAD_SCHEMA_TYPE_STATIC, 0, size,
      entries, n);
  for (int i = 0; i < count; ++i) {
    out->keys[i] = Py_NewRef(keys[i]);
    out->kinds[i] = kinds[i];
  }
  out->fixed = size;
  out->count = static_cast<uint32_t>(count);
  out->hash = hash;
  return true;
}

void clear_dict_schema(DictSchema *schema) {
  for (uint32_t i = 0; schema->keys != nullptr && i < schema->count; ++i) {
    Py_XDECREF(schema->keys[i]);
  }
  PyMem_RawFree(schema->keys);
  PyMem_RawFree(schema->kinds);
  PyMem_RawFree(schema->offsets);
  *schema = {};
}

const DictSchema *find_dict(Schemas *all, PyObject *const *keys, const Kind *kinds, int count,
                            uint64_t hash) {
  for (int i = 0; i < all->dict_count; ++i) {
    if (same_dict(all->dicts[i], keys, kinds, count, hash)) {
      all->dict_slots[hash % 1024] = static_cast<uint16_t>(i + 1);
      return &all->dicts[i];
    }
  }
  return nullptr;
}

const DictSchema *dict_locked(Domain *domain, PyObject *const *keys, const Kind *kinds, int count,
                              uint64_t hash) {
  Schemas *all = schemas_of(domain);
  if (all == nullptr) {
    return nullptr;
  }
  const uint16_t slot = all->dict_slots[hash % 1024];
  if (slot != 0 && same_dict(all->dicts[slot - 1], keys, kinds, count, hash)) [[likely]] {
    return &all->dicts[slot - 1];
  }
  if (const DictSchema *known = find_dict(all, keys, kinds, count, hash); known != nullptr) {
    return known;
  }
  if (all->dict_count >= kMaxDictSchemas) {
    return nullptr;
  }
  // Making one may ask Python, and so let other threads in: they may make the same, and use up the places.
  DictSchema made = {};
  if (make_dict_schema(domain, &made, keys, kinds, count, hash)) {
    const DictSchema *known = find_dict(all, keys, kinds, count, hash);
    if (known == nullptr && all->dict_count < kMaxDictSchemas) {
      all->dicts[all->dict_count++] = made;
      return &all->dicts[all->dict_count - 1];
    }
    clear_dict_schema(&made);
    return known;
  }
  clear_dict_schema(&made);
  return nullptr;
}

uint64_t scope_locked(Domain *domain, PyObject *path) {
  Schemas *all = schemas_of(domain);
  if (all == nullptr || (all->scopes == nullptr && (all->scopes = PyDict_New()) == nullptr)) {
    swallow_error();
    return NVTX_SCOPE_NONE;
  }
  if (PyObject *known = PyDict_GetItemWithError(all->scopes, path); known != nullptr) {
    return number(known);
  }
  PyObject *holder = nullptr;
  nvtxScopeAttr_t attributes = {};
  attributes.structSize = sizeof attributes;
  attributes.path = utf8(path, &holder);
  const uint64_t id = nvtxScopeRegister(domain->handle, &attributes);
  Py_XDECREF(holder);
  PyObject *kept = PyLong_FromUnsignedLongLong(id);
  if (kept == nullptr || PyDict_SetItem(all->scopes, path, kept) < 0) {
    swallow_error();
  }
  Py_XDECREF(kept);
  return id;
}

// Every question goes through here: what is known is of the listener `state`, and one thread asks at a time.
template <typename Answer, typename Ask>
Answer locked(Domain *domain, int32_t state, Ask ask) {
  handle_for(domain, state);
  Answer answer = {};
  WARPLENS_LOCK(domain);
  answer = ask();
  WARPLENS_UNLOCK();
  return answer;
}

}  // namespace

size_t size_of(Kind kind) {
  constexpr uint8_t sizes[kKinds] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 4, 8, 8, 16, 1, 0};
  return sizes[static_cast<int>(kind)];
}

Kind kind_of_format(const char *format, Py_ssize_t itemsize) {
  if (format == nullptr) {
    return itemsize == 1 ? Kind::uint8 : Kind::none;
  }
  if (*format == '@' || *format == '=' || *format == (PY_LITTLE_ENDIAN ? '<' : '>')) {
    ++format;
  }
  if (format[0] == 'Z' && (format[1] == 'f' || format[1] == 'd') && format[2] == '\0') {
    return format[1] == 'f' ? Kind::complex64 : Kind::complex128;
  }
  if (format[0] == '\0' || format[1] != '\0') {
    return Kind::none;
  }
  const auto sized = [itemsize](Kind one, Kind two, Kind four, Kind eight) {
    return itemsize == 1   ? one
           : itemsize == 2 ? two
           : itemsize == 4 ? four
           : itemsize == 8 ? eight
                           : Kind::none;
  };
  switch (*format) {
    case '?':
      return Kind::boolean;
    case 'c':
      return Kind::byte;
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      return sized(Kind::int8, Kind::int16, Kind::int32, Kind::int64);
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      return sized(Kind::uint8, Kind::uint16, Kind::uint32, Kind::uint64);
    case 'e':
    case 'f':
    case 'd':
      return sized(Kind::none, Kind::float16, Kind::float32, Kind::float64);
    default:
      return Kind::none;
  }
}

uint64_t builtin_schema(Domain *domain, int32_t state, Builtin which) {
  // Read without the domain's lock.
  const Schemas *all = __atomic_load_n(&domain->schemas, __ATOMIC_ACQUIRE);
  if (all != nullptr && domain->state.load(std::memory_order_acquire) == state) [[likely]] {
    const uint64_t known = __atomic_load_n(&all->builtin[static_cast<int>(which)], __ATOMIC_RELAXED);
    if (known != 0) [[likely]] {
      return known;
    }
  }
  return locked<uint64_t>(domain, state, [&] { return builtin_locked(domain, which); });
}

uint64_t array_schema(Domain *domain, int32_t state, Kind element, int dimensions) {
  return locked<uint64_t>(domain, state, [&] { return array_locked(domain, element, dimensions); });
}

uint64_t layout_schema(Domain *domain, int32_t state, PyObject *layout) {
  return locked<uint64_t>(domain, state, [&] { return described(domain, layout); });
}

ArrayLayout dtype_layout(Domain *domain, int32_t state, PyObject *dtype, int dimensions) {
  return locked<ArrayLayout>(domain, state, [&] { return dtype_locked(domain, dtype, dimensions); });
}

bool dict_layout(Domain *domain, int32_t state, PyObject *const *keys, const Kind *kinds, int count,
                 uint64_t hash, DictLayout *out) {
  // A copy: reading the values may run Python, and another tool come.
  return locked<bool>(domain, state, [&] {
    const DictSchema *found = dict_locked(domain, keys, kinds, count, hash);
    if (found == nullptr || found->schema == 0) {
      return false;
    }
    out->schema = found->schema;
    out->fixed = found->fixed;
    std::memcpy(out->offsets, found->offsets, found->count * sizeof(uint32_t));
    return true;
  });
}

uint64_t scope_number(Domain *domain, int32_t state, PyObject *path) {
  return locked<uint64_t>(domain, state, [&] { return scope_locked(domain, path); });
}

PyObject *ask_layouts(const char *function, PyObject *a, PyObject *b) {
  PyObject *callable = module_attribute(function);
  if (callable == nullptr) {
    return nullptr;
  }
  PyObject *answer = PyObject_CallFunctionObjArgs(callable, a, b, nullptr);
  Py_DECREF(callable);
  if (answer == nullptr) {
    swallow_error();
  }
  return answer;
}

PyObject *attribute(PyObject *o, const char *name) {
  static Lazy texts;  // what is interned and kept by nobody is new the next time
  PyObject *kept = texts.get([] { return PySet_New(nullptr); });
  PyObject *text = PyUnicode_InternFromString(name);
  if (text == nullptr || kept == nullptr || PySet_Add(kept, text) < 0) {
    Py_XDECREF(text);
    return nullptr;
  }
  PyObject *value = PyObject_GetAttr(o, text);
  Py_DECREF(text);
  return value;
}

bool has_attribute(PyObject *o, const char *name) {
  PyObject *value = attribute(o, name);
  if (value == nullptr) {
    swallow_error();
    return false;
  }
  Py_DECREF(value);
  return true;
}

void swallow_error() {
  if (!PyErr_Occurred()) {
    return;
  }
  const bool interrupted = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
  PyErr_Clear();
  if (interrupted) {
    PyErr_SetInterrupt();
  }
}

void forget_schemas(Domain *domain) {
  Schemas *all = domain->schemas;
  if (all == nullptr) {
    return;
  }
  for (DtypeSlot &slot : all->dtypes) {
    Py_CLEAR(slot.dtype);
  }
  Py_CLEAR(all->by_layout);
  Py_CLEAR(all->scopes);
  for (int i = 0; i < all->dict_count; ++i) {
    clear_dict_schema(&all->dicts[i]);
  }
  std::memset(static_cast<void *>(all), 0, sizeof(Schemas));
}

}  // namespace warplens::binding
