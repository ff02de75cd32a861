"""The device halves of in-kernel languages, which import these: what kernels call, and their examples. `dsl` is the door."""
