"""The table behind each layer's events, and the column with their name."""

from __future__ import annotations

from warplens.model.tables import TABLES
from warplens.timeline.index import LAYERS
from warplens.viewer.answers.projecting import LAYER

_NAMES = ("message", "name", "tag", "kind", "state")
_TABLES = {**{layer.name: layer.table for layer in LAYERS}, LAYER: "nvtx_ranges"}


def table_of(layer: str) -> str:
    """Return the table that the events of a layer are rows of.

    What is no layer is a table itself.
    """
    return _TABLES.get(layer, layer)


def name_column(table: str) -> str | None:
    """Return the column with the name of an event of a table.

    None if the table has no such column.
    """
    if table not in TABLES or table in ("samples", "task_samples"):
        return None
    columns = {column.name for column in TABLES[table].columns}
    return next((name for name in _NAMES if name in columns), None)
