// Converts Python strings for NVTX: UTF-8 without NUL, registered once per domain.
#pragma once

#include "bindings/listener.h"
#include "compat.h"

namespace warplens::binding {

struct Domain;

// Distinct messages that one domain registers; a program that makes up names without end (f"item {i}") sends the rest
// as plain text, so that we do not keep them all. What a tool keeps is its own affair; our agent keeps each name once.
inline constexpr Py_ssize_t kMaxRegistered = 65536;
// Longer messages are sent as text: registering keeps a copy for good.
inline constexpr Py_ssize_t kMaxRegisteredLength = 4096;

// A new reference to bytes that hold `text` as UTF-8; NUL and lone surrogates, which NVTX cannot carry, are written as
// escapes. Never raises: a string that cannot be converted at all gives "?"; null only without memory.
PyObject *escaped(PyObject *text);

// `text` as UTF-8. The pointer lives as long as `text` and `*holder`, which is a new reference or null.
const char *utf8(PyObject *text, PyObject **holder);

// An exact str for a message or name argument: str, bytes (PyPI nvtx takes both). New reference, or null with TypeError.
PyObject *text_argument(PyObject *o, const char *what);

nvtxStringHandle_t find_registered(Domain *domain, PyObject *text);

#if !defined(Py_GIL_DISABLED)
// The way of a constant message: found by the identity of its str object, which the slot keeps alive, so that the
// address cannot come to mean another string.
struct StringSlot {
  PyObject *text;
  Domain *domain;
  nvtxStringHandle_t handle;
};
inline constexpr uintptr_t kStringSlots = 1024;
extern StringSlot g_string_slots[kStringSlots];

inline StringSlot &string_slot(Domain *domain, PyObject *text) {
  const uintptr_t key = (reinterpret_cast<uintptr_t>(text) >> 4) ^ (reinterpret_cast<uintptr_t>(text) >> 14) ^
                        (reinterpret_cast<uintptr_t>(domain) >> 5);
  return g_string_slots[key & (kStringSlots - 1)];
}
#endif

// The handle of `text` in `domain`, which a tool listens to; null when it has none and must go as text.
inline nvtxStringHandle_t registered(Domain *domain, PyObject *text) {
#if !defined(Py_GIL_DISABLED)
  const StringSlot &slot = string_slot(domain, text);
  if (slot.text == text && slot.domain == domain) [[likely]] {
    return slot.handle;
  }
#endif
  return find_registered(domain, text);
}

// Forgets every handle: another tool has attached.
void forget_registered(Domain *domain);

}  // namespace warplens::binding
