"""Samples of this host while a recording runs: memory of processes, load of the machine."""
