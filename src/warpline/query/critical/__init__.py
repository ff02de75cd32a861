"""The critical path: which work, one after the other, a recorded program could not have ended without."""

from warpline.query.critical.graph import Graph, build
from warpline.query.critical.path import Path, path

__all__ = ["Graph", "Path", "build", "path"]
