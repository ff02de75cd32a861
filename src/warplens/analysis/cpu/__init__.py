"""Threads, samples, stacks and the GIL."""
