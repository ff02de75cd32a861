"""Decides whether an untrusted text is one harmless query of the report's tables.

SELECT, DESCRIBE, SHOW or SUMMARIZE.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import duckdb

from warplens.errors import QueryError
from warplens.model.tables import TABLES

# Table functions that read nothing but their arguments.
_HARMLESS = frozenset(
    {
        "unnest",
        "range",
        "generate_series",
        "generate_subscripts",
        "repeat",
        "repeat_row",
        "json_each",
        "json_tree",
    }
)

# What says which tables and columns there are: those of the report alone, for nothing else is in the database.
_LISTINGS = frozenset((("information_schema", "tables"), ("information_schema", "columns")))
_SHOWN = frozenset(("tables", "__show_tables_expanded"))  # by SHOW TABLES, and by DESCRIBE or SHOW ALL TABLES


def check(connection: duckdb.DuckDBPyConnection, text: str) -> None:
    """Raise QueryError unless `text` is exactly one query that reads only the report's tables.

    SELECT, DESCRIBE, SHOW or SUMMARIZE.

    DuckDB's own parser says what the text is; the tree is walked for every table and table function it names.
    """
    try:
        statements = connection.extract_statements(text)
    except duckdb.Error as error:
        raise QueryError(f"not SQL: {str(error).splitlines()[0]}") from error
    if len(statements) != 1:
        raise QueryError(f"only a single SELECT is allowed, not {len(statements)} statements")
    if statements[0].type != duckdb.StatementType.SELECT:
        raise QueryError(f"only SELECT is allowed here, not {statements[0].type.name}")
    rows = connection.execute("SELECT json_serialize_sql($1::VARCHAR)", [text]).fetchall()
    tree = json.loads(rows[0][0])
    if tree.get("error"):
        raise QueryError(
            f"only a plain SELECT is allowed here: {tree.get('error_message', 'it cannot be parsed')}"
        )
    nodes = list(_nodes(tree))
    known = {name.lower() for name in TABLES} | {name.lower() for node in nodes for name in _ctes(node)}
    for node in nodes:
        kind = node.get("type")
        if kind == "BASE_TABLE":
            if (
                str(node.get("schema_name")).lower(),
                str(node.get("table_name")).lower(),
            ) in _LISTINGS and not node.get("catalog_name"):
                continue
            if (
                node.get("schema_name")
                or node.get("catalog_name")
                or str(node.get("table_name", "")).lower() not in known
            ):
                raise QueryError(
                    f"there is no table {node.get('table_name')!r}; a report has {', '.join(TABLES)}"
                )
        elif kind == "TABLE_FUNCTION":
            name = str(node.get("function", {}).get("function_name", "")).lower()
            if name not in _HARMLESS:
                raise QueryError(f"the table function {name}() is not allowed here")
        elif kind == "SHOW_REF":
            _check_listing(node)
        elif kind in ("COLUMN_DATA", "DELIM_GET"):
            raise QueryError("only a plain SELECT is allowed here")


def _check_listing(node: dict[str, Any]) -> None:
    """Raise QueryError for a DESCRIBE, SHOW or SUMMARIZE outside the report's tables.

    Its query is walked separately.
    """
    if node.get("query") is not None:
        return
    name = str(node.get("table_name", "")).strip('"').lower()
    if node.get("schema_name") or node.get("catalog_name") or (name not in _SHOWN and name not in TABLES):
        raise QueryError(
            f"SHOW {name or 'FROM'} is not allowed here: SHOW TABLES lists the tables, DESCRIBE the columns of one"
        )


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    stack = [tree]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            yield item
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def _ctes(node: dict[str, Any]) -> list[str]:
    names = (
        [str(entry.get("key", "")) for entry in node["cte_map"].get("map", [])]
        if isinstance(node.get("cte_map"), dict)
        else []
    )
    if node.get("type") in ("RECURSIVE_CTE_NODE", "CTE_NODE"):
        names.append(str(node.get("cte_name", node.get("ctename", ""))))
    return names
