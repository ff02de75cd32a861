"""Raises ImportError: PyPI `nvtx.writer` writes events into a tool's closed library."""

raise ImportError(
    "warplens.nvtx has no writer: PyPI nvtx.writer feeds events into the closed backend of a vendor's tool."
    " Record events as they happen with warplens.nvtx (counters with given times: Counter.batch_submit),"
    " or write them as a Chrome trace; PyPI nvtx remains usable beside warplens for its writer."
)
