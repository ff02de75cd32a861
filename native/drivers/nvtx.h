// The tool's side of NVTX v3: types and callback numbers, without the API's own implementation.
#pragma once

#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
