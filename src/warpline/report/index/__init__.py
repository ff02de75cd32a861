"""The level-of-detail index of a part: every slice of the timeline in lanes, so that any view of any size is drawn at once."""

from warpline.report.index.answers import Hit, Sums, Viewport
from warpline.report.index.builder import IndexBuilder
from warpline.report.index.index import IndexTrack, LaneIndex
from warpline.report.index.layers import LAYERS, Layer
from warpline.report.index.names import Names

__all__ = ["LAYERS", "Hit", "IndexBuilder", "IndexTrack", "LaneIndex", "Layer", "Names", "Sums", "Viewport"]
