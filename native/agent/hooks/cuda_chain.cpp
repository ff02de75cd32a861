// Loads the tool that CUDA_INJECTION64_PATH named before the agent took its place.
#include "cuda_chain.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

namespace warplens::agent {

void start_other_cuda_tool() {
  // Not std::call_once: a child that another thread forks meanwhile would wait for it for ever.
  static std::atomic_flag done = ATOMIC_FLAG_INIT;
  const char *path = secure_getenv("WARPLENS_CUDA_CHAIN");
  if (path == nullptr || *path == '\0' || done.test_and_set()) {
    return;
  }
  void *library = dlopen(path, RTLD_NOW);
  void *init = library != nullptr ? dlsym(library, "InitializeInjection") : nullptr;
  Dl_info theirs{};
  Dl_info ours{};
  if (init == nullptr ||
      (dladdr(init, &theirs) != 0 && dladdr(reinterpret_cast<void *>(&start_other_cuda_tool), &ours) != 0 &&
       theirs.dli_fbase == ours.dli_fbase)) {
    return;  // no tool, or ourselves
  }
  reinterpret_cast<int (*)()>(init)();
}

}  // namespace warplens::agent
