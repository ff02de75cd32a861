"""Threads of a service write to one SQLite file, whose busy handler lets them sleep; `--fix` makes one thread write for all."""

import sqlite3
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


def add_order(path: Path, number: int) -> None:
    """Write one order in a transaction that takes 4 ms."""
    with sqlite3.connect(path, timeout=30) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO orders VALUES (?, ?)", (number, threading.get_ident()))
        time.sleep(0.004)


def main() -> None:
    """Take 240 orders in eight threads."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.db"
        with sqlite3.connect(path) as connection:
            connection.execute("CREATE TABLE orders (number INTEGER, thread INTEGER)")
        with ThreadPoolExecutor(1 if "--fix" in sys.argv else 8) as pool:
            list(pool.map(lambda number: add_order(path, number), range(240)))


main()
