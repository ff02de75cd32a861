// Finding libcupti in a process that may have one, several or none, and asking the driver what it is.
#pragma once

#include <string>
#include <vector>

#include "drivers/cupti.h"

namespace warplens::agent {

//! Whether libcuda is in this process. Without it, no function of CUPTI may be called: some versions crash.
bool is_driver_loaded();

//! Whether cuInit has been called.
bool is_driver_started();

//! cuDeviceGetCount of the driver in this process, null where there is none.
CudaResult (*find_device_count())(int *);

struct CuptiLibrary {
  CuptiFunctions call = {};
  uint32_t version = 0;
  int driver = 0;
  std::string path;    // of the library that was taken; in the error's case, what was wrong
  std::string looked;  // where it was looked for
};

//! Loads the first CUPTI that fits the driver: what WARPLENS_CUPTI names and no other; else one that the process has loaded, those in
//! LD_LIBRARY_PATH, those of WARPLENS_CUPTI_SEARCH, those beside the CUDA libraries in the process and in CUDA's usual places, then by
//! name, newest first. Paths in `refused` are left out. False if there is none. May throw bad_alloc.
bool load_cupti(CuptiLibrary &library, const std::vector<std::string> &refused);

//! What the major version of a libcupti is, by its file name; 0 if that does not say.
int cupti_major_of(const std::string &path);

}  // namespace warplens::agent
