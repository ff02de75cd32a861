# Finds the NVTX v3 headers: the PyPI package nvidia-nvtx of the building interpreter, else a CUDA toolkit.
execute_process(
  COMMAND ${Python_EXECUTABLE} -c [=[
import importlib.metadata as m
try:
    print(next(str(f.locate().parent.parent) for f in m.files("nvidia-nvtx") or [] if f.name == "nvToolsExt.h"))
except (m.PackageNotFoundError, StopIteration):
    pass
]=]
  OUTPUT_VARIABLE WARPLENS_NVTX_WHEEL
  OUTPUT_STRIP_TRAILING_WHITESPACE)
find_path(WARPLENS_NVTX_INCLUDE nvtx3/nvToolsExtCounters.h
  HINTS ${WARPLENS_NVTX_WHEEL} $ENV{CUDA_HOME}/include /usr/local/cuda/include
  REQUIRED
  DOC "Folder that holds nvtx3/nvToolsExt.h of CUDA 13 or later (pip install nvidia-nvtx)")
add_library(nvtx_headers INTERFACE)
target_include_directories(nvtx_headers SYSTEM INTERFACE ${WARPLENS_NVTX_INCLUDE})
