"""NVTX ranges: durations, nesting, projection onto the GPU."""
