"""What kernels recorded inside: buffers put together from their parts, and decoded into units, events and marks."""
