"""Extended NVTX payloads as columns, values and text."""
