"""Analyses of regions inside kernels: sums, balance and overlap."""
