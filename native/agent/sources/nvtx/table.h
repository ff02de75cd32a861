// The function tables of a client, module by module: each file fills its own.
#pragma once

#include "drivers/nvtx.h"

namespace warplens::agent {

// One module's table, which may be shorter than ours: old clients know fewer functions.
class Table {
 public:
  Table(const NvtxExportTableCallbacks &callbacks, NvtxCallbackModule module) {
    if (callbacks.GetModuleFunctionTable(module, &functions_, &size_) == 0 || functions_ == nullptr) {
      size_ = 0;
    }
  }

  template <typename Function>
  void set(unsigned id, Function *function) {
    if (id < size_ && functions_[id] != nullptr) {
      *functions_[id] = reinterpret_cast<NvtxFunctionPointer>(function);
    }
  }

 private:
  NvtxFunctionTable functions_ = nullptr;
  unsigned size_ = 0;
};

void fill_resources(Table table);
void fill_cuda_names(Table table);
void fill_cudart_names(Table table);
void fill_opencl_names(Table table);
void fill_sync(Table table);

}  // namespace warplens::agent
