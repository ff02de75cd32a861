"""The critical path: the chain of work that determines the end of a recorded program."""

from warplens.analysis.critical_path.graph import Graph, build
from warplens.analysis.critical_path.path import Path, path

__all__ = ["Graph", "Path", "build", "path"]
