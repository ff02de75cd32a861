"""NVTX tables: ranges, marks, counters, payloads, objects, tasks."""
