"""The tables of kernels that time themselves."""
