// Domains by name: makes them, registers their categories, and activates them when a tool listens.
#include "domain.h"

#include <new>

#include "bindings/payloads/schemas.h"
#include "bindings/values/string_cache.h"

namespace warplens::binding {

Domain *g_default_domain = nullptr;

namespace {

PyObject *g_domains = nullptr;  // str -> Domain

Domain *make_domain(PyObject *name) {
  Domain *domain = PyObject_New(Domain, &DomainType);
  if (domain == nullptr) {
    return nullptr;
  }
  domain->name = Py_XNewRef(name);
  new (&domain->state) std::atomic<int32_t>(0);
  domain->handle = nullptr;
  domain->schemas = nullptr;
  domain->counters = nullptr;
  domain->numbered = nullptr;
  domain->users = domain->scopes = 0;
  domain->strings = PyDict_New();
  domain->categories = PyDict_New();
  if (domain->strings == nullptr || domain->categories == nullptr) {
    Py_DECREF(domain);
    return nullptr;
  }
  return domain;
}

void name_category(Domain *domain, PyObject *name, uint32_t id) {
  PyObject *holder = nullptr;
  nvtxDomainNameCategoryA(domain->handle, id, utf8(name, &holder));
  Py_XDECREF(holder);
}

bool numbered(Domain *domain, PyObject *number) {
  const bool taken =
      domain->numbered != nullptr && PyDict_GetItemWithError(domain->numbered, number) != nullptr;
  PyErr_Clear();
  return taken;
}

void activate_locked(Domain *domain, int32_t state) {
  if (domain->state.load(std::memory_order_relaxed) == state) {
    return;
  }
  forget_registered(domain);
  forget_schemas(domain);
  if (domain->name != nullptr) {
    PyObject *holder = nullptr;
    domain->handle = nvtxDomainCreateA(utf8(domain->name, &holder));
    Py_XDECREF(holder);
  }
  PyObject *name = nullptr;
  PyObject *id = nullptr;
  Py_ssize_t at = 0;
  while (PyDict_Next(domain->categories, &at, &name, &id)) {
    if (!numbered(domain, id)) {
      name_category(domain, name, static_cast<uint32_t>(PyLong_AsUnsignedLongMask(id)));
    }
  }
  at = 0;
  while (domain->numbered != nullptr && PyDict_Next(domain->numbered, &at, &id, &name)) {
    name_category(domain, name, static_cast<uint32_t>(PyLong_AsUnsignedLongMask(id)));
  }
  domain->state.store(state, std::memory_order_release);
}

uint32_t category_locked(Domain *domain, PyObject *name, int32_t state) {
  PyObject *known = PyDict_GetItemWithError(domain->categories, name);
  if (known != nullptr) {
    return static_cast<uint32_t>(PyLong_AsUnsignedLongMask(known));
  }
  PyErr_Clear();
  uint32_t id = static_cast<uint32_t>(PyDict_GET_SIZE(domain->categories)) + 1;
  PyObject *number = PyLong_FromUnsignedLong(id);
  while (number != nullptr && numbered(domain, number)) {
    Py_DECREF(number);
    number = PyLong_FromUnsignedLong(++id);
  }
  const bool kept = number != nullptr && PyDict_SetItem(domain->categories, name, number) == 0;
  Py_XDECREF(number);
  if (!kept) {
    PyErr_Clear();
    return 0;
  }
  if (state > 0 && domain->state.load(std::memory_order_relaxed) == state) {
    name_category(domain, name, id);
  }
  return id;
}

}  // namespace

Domain *domain_named(PyObject *name) {
  if (given(name) == nullptr) {
    return g_default_domain;
  }
  PyObject *key = text_argument(name, "domain");
  if (key == nullptr) {
    return nullptr;
  }
  PyObject *found = PyDict_GetItemWithError(g_domains, key);
  if (found == nullptr && !PyErr_Occurred()) {
    PyObject *made = reinterpret_cast<PyObject *>(make_domain(key));
    if (made != nullptr) {
      found = PyDict_SetDefault(g_domains, key, made);
      Py_DECREF(made);
    }
  }
  Py_DECREF(key);
  return reinterpret_cast<Domain *>(found);
}

void activate(Domain *domain, int32_t state) {
  const KeptError error;
  WARPLENS_LOCK(domain);
  activate_locked(domain, state);
  WARPLENS_UNLOCK();
}

bool name_category_number(Domain *domain, uint32_t id, PyObject *name, int32_t state) {
  bool done = false;
  PyObject *number = PyLong_FromUnsignedLong(id);
  if (state > 0) {
    handle_for(domain, state);  // tells what was named before
  }
  WARPLENS_LOCK(domain);
  if (domain->numbered == nullptr) {
    domain->numbered = PyDict_New();
  }
  done = number != nullptr && domain->numbered != nullptr &&
         PyDict_SetItem(domain->numbered, number, name) == 0 &&
         PyDict_SetItem(domain->categories, name, number) == 0;
  WARPLENS_UNLOCK();
  Py_XDECREF(number);
  if (done && state > 0) {
    name_category(domain, name, id);
  }
  return done;
}

bool destroy(Domain *domain) {
#if defined(Py_GIL_DISABLED)
  return false;
#else
  const int32_t state = domain->state.load(std::memory_order_relaxed);
  if (domain == g_default_domain || domain->users > 0 || domain->scopes > 0 || state == 0 ||
      state != listener()) {
    return false;
  }
  const nvtxDomainHandle_t handle = domain->handle;
  domain->state.store(0, std::memory_order_release);
  domain->handle = nullptr;
  forget_registered(domain);
  forget_schemas(domain);
  nvtxDomainDestroy(handle);
  return true;
#endif
}

uint32_t category_named(Domain *domain, PyObject *name, int32_t state) {
  uint32_t id = 0;
  WARPLENS_LOCK(domain);
  id = category_locked(domain, name, state);
  WARPLENS_UNLOCK();
  return id;
}

bool init_domains() {
  if (g_domains == nullptr) {
    g_domains = PyDict_New();
    g_default_domain = g_domains != nullptr ? make_domain(nullptr) : nullptr;
  }
  return g_default_domain != nullptr;
}

}  // namespace warplens::binding
