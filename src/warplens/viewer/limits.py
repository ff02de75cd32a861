"""Limits of one request: sizes, rows and times. They fit a server for one person's reports."""

from __future__ import annotations

BODY = 64 << 10  # bytes of a request's body
WIDTH = 16_384  # columns of a viewport
RECTANGLES = 20_000  # of a viewport: 36 bytes each, so that an answer stays below 1 MB
TRACKS = 20_000  # that a request may name
NAME = 96  # bytes of a name on the timeline; details have all of it
NAMES = 200  # of a search
COUNTED = 10_000  # hits of a search, up to which an answer has the position of a hit
EVENTS = 1_000  # of a search, before and after
CELL = 4_096  # characters of a cell
TEXT = 100_000  # characters of a text in details
ROWS = 10_000  # of a table
ANSWER = 16 << 20  # bytes of a table
SILENT = 500  # connections without a request so far
REQUEST_S = 20.0  # within which a request has to be there
SQL_S = 10.0
SQL_MEMORY = 4 << 30  # bytes, of all that one question takes; less where the machine has less
SQL_AT_ONCE = 2
ASK_MEMORY = 768 << 20  # bytes, of stats, findings and details
HEAVY_S = 120.0  # for which a request waits for what continues being computed
WAITING = 32  # computations that may wait for a worker
FLAME_NODES = 5_000
FILES = 200  # of which lines can be seen
TIME = 1 << 62  # ns: no time of a request is further from a report's origin
POLL_S = 25.0  # of a request that waits for news
