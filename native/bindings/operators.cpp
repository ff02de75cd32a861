// Emits operators of PyTorch as NVTX ranges of the default domain.
// `torch.autograd.profiler.emit_nvtx` does the same, but raises in builds for the CPU. PyTorch calls the two functions for each
// operator, with or without the GIL.
#include "operators.h"

#include <dlfcn.h>
#include <nvtx3/nvToolsExt.h>

#include "drivers/torch.h"

namespace warplens::binding {

namespace {

const char *(*g_name)(const TorchRecord *record) = nullptr;
bool (*g_is_async)(const TorchRecord *record) = nullptr;
uint64_t (*g_add)(TorchCallback callback) = nullptr;
void (*g_remove)(uint64_t handle) = nullptr;

// Another thread may end an asynchronous record, which a push/pop range cannot show.
std::unique_ptr<TorchContext> on_start(const TorchRecord &record) {
  if (!g_is_async(&record)) {
    nvtxRangePushA(g_name(&record));
  }
  return nullptr;
}

void on_end(const TorchRecord &record, TorchContext *) {
  if (!g_is_async(&record)) {
    nvtxRangePop();
  }
}

template <typename Function>
bool find(void *library, const char *name, Function &function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_all(const char *path) {
  void *library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr && find(library, "_ZNK2at14RecordFunction4nameEv", g_name) &&
         find(library, "_ZNK2at14RecordFunction7isAsyncEv", g_is_async) &&
         find(library, "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE", g_add) &&
         find(library, "_ZN2at14removeCallbackEm", g_remove);
}

}  // namespace

PyObject *emit_operators(PyObject *, PyObject *path) {
  const char *text = PyUnicode_AsUTF8(path);
  if (text == nullptr) {
    return nullptr;
  }
  if (!find_all(text)) {
    PyErr_Format(PyExc_OSError, "%s does not export the functions that observe operators", text);
    return nullptr;
  }
  TorchCallback callback;
  callback.start = on_start;
  callback.end = on_end;
  for (TorchScope scope : {TorchScope::function, TorchScope::backward, TorchScope::torchscript,
                           TorchScope::custom_class, TorchScope::user}) {
    callback.scopes[static_cast<size_t>(scope)] = true;
  }
  return PyLong_FromUnsignedLongLong(g_add(callback));
}

PyObject *stop_operators(PyObject *, PyObject *number) {
  const unsigned long long handle = PyLong_AsUnsignedLongLong(number);
  if (PyErr_Occurred() != nullptr) {
    return nullptr;
  }
  if (g_remove != nullptr) {
    g_remove(handle);
  }
  Py_RETURN_NONE;
}

}  // namespace warplens::binding
