"""The critical path: which work, one after the other, a recorded program could not have ended without."""

from warplens.analysis.critical_path.graph import Graph, build
from warplens.analysis.critical_path.path import Path, path

__all__ = ["Graph", "Path", "build", "path"]
