"""Formats numbers for people: `12.3 ms`, `1.5 MiB`, `3 ranges`, `45 %`."""

from __future__ import annotations


def duration(ns: float) -> str:
    """Return a time with three digits and its unit, e.g. `1.23 ms`."""
    for factor, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "us")):
        # 999.6 us would round to 1000 us
        if abs(ns) >= 0.9995 * factor:
            return f"{_three(ns / factor)} {unit}"
    return f"{ns:.0f} ns"


def size(count: int) -> str:
    """Return a number of bytes, e.g. `1.5 MiB`."""
    value, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 999.5:
            break
        value, unit = value / 1024, larger
    return f"{value:.0f} {unit}" if unit == "bytes" else f"{_three(value)} {unit}"


def counted(count: int, noun: str) -> str:
    """Return e.g. `1 range`, `2,500 ranges`, `3 processes`, `2 launches`."""
    plural = (
        f"{noun[:-1]}ies"
        if noun.endswith("opy")
        else noun + ("es" if noun.endswith(("s", "sh", "ch", "x")) else "s")
    )
    return f"{count:,} {noun if count == 1 else plural}"


def was(count: int) -> str:
    """Return the verb for `counted`: `1 range was lost`, `2 ranges were lost`."""
    return "was" if count == 1 else "were"


def percent(share: float, places: int = 0, *, sign: bool = False) -> str:
    """Return a share of 1 in percent, e.g. `45 %`, `+4.5 %`."""
    return f"{100 * share:{'+' if sign else ''}.{places}f} %"


def _three(value: float) -> str:
    places = 2 if abs(value) < 9.995 else 1 if abs(value) < 99.95 else 0
    return f"{value:,.{places}f}"
