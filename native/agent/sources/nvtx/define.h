// Definitions: JSON about schemas, counters, resources and other objects, written once.
#pragma once

#include "text.h"

namespace warplens::agent {

enum class Kind : uint32_t {
  once = 0,    // will not come again, and a fork child need not know it
  schema = 1,  // enumerations too: they share their numbers
  counter,
  scope,
  time_domain,
  resource,
  sync,
  device,  // these four in this order
  context,
  stream,
  event,
  opencl,  // and six more behind it
  heap = opencl + 7,
  region,
  permissions,
};

//! [MT] Writes a definition; what cannot be written is counted.
void define(uint16_t domain, Kind kind, uint64_t id, const std::string &json);

//! [MT] The object is gone: a fork child need not know it.
void forget(uint16_t domain, Kind kind, uint64_t id);

//! [MT] Writes that something was done to an object.
void operate(uint16_t domain, OperationAction action, uint64_t object, uint64_t value = 0);

}  // namespace warplens::agent
