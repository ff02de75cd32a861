// A domain: one object per name for the life of the process, so it can be pointed to without counting.
#pragma once

#include "compat.h"
#include "listener.h"

namespace warpline::binding {

struct Schemas;

struct Domain {
  PyObject_HEAD PyObject *name;  // str, or null for NVTX's default domain
  std::atomic<int32_t> state;    // the listener that the handle belongs to; 0: none yet
  nvtxDomainHandle_t handle;
  PyObject *strings;     // str -> int, the handle of a registered string
  PyObject *categories;  // str -> int, ids from 1 in order of first use
  Schemas *schemas;      // null until the first extended payload
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

// The id of a category name (an exact str); a new one is told to the tool. 0 without memory, no exception.
uint32_t category_named(Domain *domain, PyObject *name, int32_t state);

bool init_domains();

}  // namespace warpline::binding
