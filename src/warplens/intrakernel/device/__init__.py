"""The device halves of in-kernel languages, which import these: what kernels call.

`dsl` is the door.
"""
