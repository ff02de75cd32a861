// Payload arguments: which objects can be recorded, and how.
//
// Plain numbers travel in the event's attributes; all else through NVTX's payload extension, read anew at each event.
#pragma once

#include "bindings/domain.h"
#include "bindings/values/compat.h"
#include "reading.h"
#include "schemas.h"

namespace warplens::binding {

// Reads what `payload` is now. Never fails: what cannot be recorded is left out, with a warning once per type.
void read_payload(Domain *domain, int32_t state, PyObject *payload, Reading *out);

// True where the payload is a plain number that will not change, which is then in `type` and `number`.
bool constant_payload(PyObject *payload, Reading *out);

// A NumPy scalar, or anything else that is one number by the buffer protocol; false where it is none.
bool number_of_buffer(PyObject *payload, Reading *out);

// Parts of read_payload(); false where the object is not theirs.
bool read_array(Domain *domain, int32_t state, PyObject *payload, Reading *out);     // has a buffer
bool read_bytes(Domain *domain, int32_t state, PyObject *payload, Reading *out);     // bytes, bytearray
bool read_sequence(Domain *domain, int32_t state, PyObject *payload, Reading *out);  // list, tuple, range
bool read_dict(Domain *domain, int32_t state, PyObject *payload, Reading *out);
void read_text(Domain *domain, int32_t state, PyObject *text, Builtin schema, Reading *out);
bool read_json(Domain *domain, int32_t state, PyObject *payload, Reading *out);

// The kind of a value that stands alone in a list or dict, none where it is something else; writes its size_of() bytes.
Kind kind_of_value(PyObject *value);
void write_value(PyObject *value, Kind kind, char *out);

// Says once per type that payloads of it are not recorded; `format` has one %s, for the type.
void warn_once(const char *format, PyObject *payload);

// True when the tool takes the payload extension's call with this number (NVTX3EXT_CBID_*).
bool payload_call_taken(Domain *domain, int32_t state, int callback);

}  // namespace warplens::binding
