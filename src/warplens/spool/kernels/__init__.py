"""Reads buffers of kernels: joins their parts and decodes units, events and marks."""
