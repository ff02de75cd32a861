"""The critical path: which work, one after the other, a recorded program could not have ended without."""

from warplens.query.critical.graph import Graph, build
from warplens.query.critical.path import Path, path

__all__ = ["Graph", "Path", "build", "path"]
