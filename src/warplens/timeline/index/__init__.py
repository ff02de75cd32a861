"""The level-of-detail index of a part: every slice of the timeline in lanes.

So any view of any size is drawn at once.
"""

from warplens.timeline.index.answers import Cells, Hit, Sums, Viewport
from warplens.timeline.index.builder import IndexBuilder
from warplens.timeline.index.index import IndexTrack, LaneIndex
from warplens.timeline.index.layers import LAYERS, Layer
from warplens.timeline.index.names import Names

__all__ = [
    "LAYERS",
    "Cells",
    "Hit",
    "IndexBuilder",
    "IndexTrack",
    "LaneIndex",
    "Layer",
    "Names",
    "Sums",
    "Viewport",
]
