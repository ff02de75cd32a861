"""Traces of training jobs: the operations of all ranks."""
