"""Computes answers from a report: intervals, steps, GPU and CPU time, critical path, comparison."""
