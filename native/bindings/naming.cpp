// Keeps the names of threads and CUDA handles, and sends them again to a tool that comes later.
#include "naming.h"

#include <nvtx3/nvToolsExt.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bindings/payloads/schemas.h"
#include "bindings/values/arguments.h"
#include "bindings/values/string_cache.h"
#include "listener.h"

namespace warplens::binding {

namespace {

constexpr Py_ssize_t kMaxNames = 16384;  // kept for a tool that comes later

const Signature g_name_thread("name_thread", 2, 1, {"name", "tid"});
const Signature g_name_cuda_device("name_cuda_device", 2, 2, {"device", "name"});
const Signature g_name_cuda_stream("name_cuda_stream", 2, 2, {"stream", "name"});
const Signature g_name_cuda_event("name_cuda_event", 2, 2, {"event", "name"});
const Signature g_name_cuda_context("name_cuda_context", 2, 2, {"context", "name"});

enum What { kThread, kDevice, kStream, kEvent, kContext };

PyObject *g_names = nullptr;  // (what, identifier) -> str

auto &globals() {
  return NVTX_VERSIONED_IDENTIFIER(nvtxGlobals);
}

// CUDA's functions have no header without CUDA; their pointers are NVTX's all the same. Once a tool has attached they are
// the tool's, or null.
void tell(int what, uint64_t identifier, PyObject *name) {
  PyObject *holder = nullptr;
  const char *text = utf8(name, &holder);
  const auto &g = globals();
  void *object = reinterpret_cast<void *>(identifier);
  if (what == kThread) {
    nvtxNameOsThreadA(static_cast<uint32_t>(identifier), text);
  } else if (what == kDevice && g.nvtxNameCudaDeviceA_impl_fnptr != nullptr) {
    g.nvtxNameCudaDeviceA_impl_fnptr(static_cast<int>(identifier), text);
  } else if (what == kStream && g.nvtxNameCudaStreamA_impl_fnptr != nullptr) {
    g.nvtxNameCudaStreamA_impl_fnptr(object, text);
  } else if (what == kEvent && g.nvtxNameCudaEventA_impl_fnptr != nullptr) {
    g.nvtxNameCudaEventA_impl_fnptr(object, text);
  } else if (what == kContext && g.nvtxNameCuContextA_impl_fnptr != nullptr) {
    g.nvtxNameCuContextA_impl_fnptr(object, text);
  }
  Py_XDECREF(holder);
}

void tell_all() {
  const KeptError error;
  PyObject *key = nullptr;
  PyObject *name = nullptr;
  Py_ssize_t at = 0;
  if (g_names == nullptr) {
    return;
  }
  WARPLENS_LOCK(g_names);
  while (PyDict_Next(g_names, &at, &key, &name)) {
    tell(static_cast<int>(PyLong_AsLong(PyTuple_GET_ITEM(key, 0))),
         PyLong_AsUnsignedLongLongMask(PyTuple_GET_ITEM(key, 1)), name);
  }
  WARPLENS_UNLOCK();
}

void keep(int what, uint64_t identifier, PyObject *name) {
  PyObject *key = Py_BuildValue("(iK)", what, static_cast<unsigned long long>(identifier));
  if (key != nullptr && PyDict_GET_SIZE(g_names) < kMaxNames) {
    PyDict_SetItem(g_names, key, name);
  }
  PyErr_Clear();
  Py_XDECREF(key);
}

// The handle in an int, or in an object of torch, CuPy, Numba or cuda.core. False with TypeError.
bool handle_of(PyObject *o, const char *what, uint64_t *out) {
  constexpr const char *attributes[] = {"cuda_stream", "cuda_event", "ptr", "handle", "value"};
  PyObject *at = Py_NewRef(o);
  for (int depth = 0; depth < 3 && !PyIndex_Check(at); ++depth) {
    PyObject *inner = nullptr;
    for (const char *name : attributes) {
      if (inner == nullptr) {
        inner = attribute(at, name);
        swallow_error();
      }
    }
    Py_DECREF(at);
    if (inner == nullptr) {
      PyErr_Format(PyExc_TypeError, "%s must be an int, or an object that has a handle, not %.100s", what,
                   Py_TYPE(o)->tp_name);
      return false;
    }
    at = inner;
  }
  PyObject *number = PyNumber_Index(at);
  Py_DECREF(at);
  if (number == nullptr) {
    return false;
  }
  *out = PyLong_AsUnsignedLongLongMask(number);
  Py_DECREF(number);
  return true;
}

PyObject *give(int what, uint64_t identifier, PyObject *name) {
  PyObject *text = text_argument(name, "name");
  if (text == nullptr) {
    return nullptr;
  }
  const int32_t state = listener();
  WARPLENS_LOCK(g_names);
  keep(what, identifier, text);
  WARPLENS_UNLOCK();
  if (state > 0) {
    const KeptError error;
    tell(what, identifier, text);
  }
  Py_DECREF(text);
  Py_RETURN_NONE;
}

PyObject *give_handle(int what, const char *called, const Signature &signature, PyObject *const *args,
                      Py_ssize_t nargs, PyObject *kwnames) {
  Values<2> values;
  uint64_t handle = 0;
  if (!values.read(signature, args, nargs, kwnames) || !handle_of(values[0], called, &handle)) {
    return nullptr;
  }
  return give(what, handle, values[1]);
}

}  // namespace

PyObject *name_thread(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  Values<2> values;
  if (!values.read(g_name_thread, args, nargs, kwnames)) {
    return nullptr;
  }
  uint64_t tid = static_cast<uint64_t>(syscall(SYS_gettid));
  if (given(values[1]) != nullptr) {
    PyObject *number = PyNumber_Index(values[1]);
    if (number == nullptr) {
      return nullptr;
    }
    tid = PyLong_AsUnsignedLongLongMask(number);
    Py_DECREF(number);
  }
  return give(kThread, tid, values[0]);
}

PyObject *name_cuda_device(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return give_handle(kDevice, "device", g_name_cuda_device, args, nargs, kwnames);
}
PyObject *name_cuda_stream(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return give_handle(kStream, "stream", g_name_cuda_stream, args, nargs, kwnames);
}
PyObject *name_cuda_event(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return give_handle(kEvent, "event", g_name_cuda_event, args, nargs, kwnames);
}
PyObject *name_cuda_context(PyObject *, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames) {
  return give_handle(kContext, "context", g_name_cuda_context, args, nargs, kwnames);
}

bool init_naming() {
  if (g_names == nullptr) {
    g_names = PyDict_New();
    g_when_attached.store(tell_all);
  }
  return g_names != nullptr;
}

}  // namespace warplens::binding
