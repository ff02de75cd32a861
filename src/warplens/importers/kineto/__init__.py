"""Reads traces of PyTorch's profiler, and Chrome traces in general."""
