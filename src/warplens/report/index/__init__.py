"""The level-of-detail index of a part: every slice of the timeline in lanes, so that any view of any size is drawn at once."""

from warplens.report.index.answers import Hit, Sums, Viewport
from warplens.report.index.builder import IndexBuilder
from warplens.report.index.index import IndexTrack, LaneIndex
from warplens.report.index.layers import LAYERS, Layer
from warplens.report.index.names import Names

__all__ = ["LAYERS", "Hit", "IndexBuilder", "IndexTrack", "LaneIndex", "Layer", "Names", "Sums", "Viewport"]
