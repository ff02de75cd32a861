"""What happened inside kernels that timed themselves: sums, balance and overlap of their regions."""
