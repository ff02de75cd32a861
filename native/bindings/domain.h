// The object of an NVTX domain.
// One object per name for the life of the process, so pointers to it need no reference count.
#pragma once

#include "bindings/values/compat.h"
#include "listener.h"

namespace warplens::binding {

struct Schemas;

struct Domain {
  PyObject_HEAD PyObject *name;  // str, or null for NVTX's default domain
  std::atomic<int32_t> state;    // the listener that the handle belongs to; 0: none yet
  nvtxDomainHandle_t handle;
  PyObject *strings;     // str -> int, the handle of a registered string
  PyObject *categories;  // str -> int, ids from 1 in order of first use
  Schemas *schemas;      // null until the first extended payload
  PyObject *counters;    // arguments -> Counter, null until the first one
  PyObject *numbered;    // int -> str: categories that were named by number
  int64_t users;         // what holds handles of the domain, and so keeps destroy() from doing anything
  int64_t scopes;        // with blocks
};

extern PyTypeObject DomainType;

// The default domain; there from the import on.
extern Domain *g_default_domain;

// The domain for a name argument (str, bytes or None). Borrowed and immortal, or null with an exception.
Domain *domain_named(PyObject *name);

// Makes the handle for the listener `state` > 0, and names the categories that were used before it came.
void activate(Domain *domain, int32_t state);

inline nvtxDomainHandle_t handle_for(Domain *domain, int32_t state) {
  if (domain->state.load(std::memory_order_acquire) != state) [[unlikely]] {
    activate(domain, state);
  }
  return domain->handle;
}

// The id of a category name (an exact str); a new one is reported to the tool. 0 without memory, no exception.
uint32_t category_named(Domain *domain, PyObject *name, int32_t state);

// Names a category by its number, now and for every tool that comes. False with an exception.
bool name_category_number(Domain *domain, uint32_t id, PyObject *name, int32_t state);

// Reports to the tool that the domain is no longer used, unless this process still uses it. The domain
// makes its handle again when it is used again. True if the tool received the report.
bool destroy(Domain *domain);

// Whatever holds handles (prepared events, counters) says so. The default domain is never destroyed.
inline void use(Domain *domain, int delta) {
#if !defined(Py_GIL_DISABLED)  // without the GIL nothing is destroyed
  if (domain != g_default_domain) {
    domain->users += delta;
  }
#else
  (void)domain, (void)delta;
#endif
}

bool init_domains();

}  // namespace warplens::binding
