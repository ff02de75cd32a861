"""What a round does with a damaged input: commands in this process, and questions to the page."""

from __future__ import annotations

import contextlib
import io
import json
import random
import warnings
from pathlib import Path
from urllib.parse import quote, urlencode

from tests.hostile.readers.damage import NUMBERS, ODD
from tests.support.page.viewing import Client, serving
from warplens import catalog
from warplens.cli.group import run
from warplens.errors import WarplensError

QUESTIONS = (
    "SELECT * FROM nvtx_ranges JOIN threads USING (thread)",
    "SELECT count(*), max(start), min(command) FROM processes",
    "SELECT * FROM payloads",
    'SELECT name, sum("end" - start) FROM kernels GROUP BY ALL',
)
_ENDS = frozenset((0, 1, 2))
_TOO_LITTLE = ("too little memory", "out of memory", "bad_alloc", "more memory than SQL may have")


class Wrong(Exception):
    """A reader did what it must not do."""


def commands(path: Path, chance: random.Random, folder: Path) -> None:
    """Give an input to some commands; each must answer or refuse in words."""
    stats = [unit.id for unit in catalog.units("stats.tables")]
    formats = [unit.id for unit in catalog.units("exporters.formats")]
    known: list[tuple[object, ...]] = [
        ("info", path),
        ("stats", path),
        ("stats", "-r", chance.choice(stats), path),
        ("stats", "-r", ",".join(chance.sample(stats, 3)), "--filter-time", "0/1s", "-f", "csv", path),
        ("analyze", path),
        ("timeline", path),
        ("query", path, chance.choice(QUESTIONS)),
        ("export", "-f", "-t", chance.choice(formats), "-o", folder / "out", path),
        ("import", "-f", "-o", folder / "imported.warplens", path),
    ]
    if not path.name.endswith(".warplens"):
        known += known[-1:] * 4
    for words in chance.sample(known, 2):
        command([str(word) for word in words])


def command(words: list[str]) -> str:
    """Run one command line; return what it printed. Raises Wrong if it ends in another way than in words."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            code = run(words)
        except BaseException as error:
            raise Wrong(f"{words} ended in {type(error).__name__}: {error}") from error
    said = err.getvalue()
    if code not in _ENDS:
        raise Wrong(f"{words} ended with {code}: {said}")
    if "Traceback" in said:
        raise Wrong(f"{words} said {said}")
    if any(word in said for word in _TOO_LITTLE):
        raise Wrong(f"{words} took more memory than it may: {said}")
    if code and not said.strip():
        raise Wrong(f"{words} ended with {code} and said nothing")
    return said


def page(path: Path, chance: random.Random) -> None:
    """Open a report in the page, and ask it what the page asks; each answer is one, or what is wrong in words."""
    try:
        with serving(path) as client:
            for _ in range(12):
                _ask(client, chance)
    except (WarplensError, OSError):
        return


def _ask(client: Client, chance: random.Random) -> None:
    names = (
        "meta",
        "tracks",
        "viewport",
        "plots",
        "event",
        "alike",
        "search",
        "at",
        "findings",
        "stat-list",
        "selected",
        "flame",
        "steps",
    )
    name = chance.choice(
        (*names, "diagnostics", "difference", "stat/nvtx_sum", f"stat/{_text(chance)}", "sql")
    )
    if name == "sql":
        body = json.dumps({"report": chance.choice((0, 0, 0, 1, -1, 1 << 70)), "text": _sql(chance)}).encode()
        if chance.random() < 0.2:
            body = bytes(chance.randrange(256) if chance.random() < 0.05 else byte for byte in body)
        answer = client.ask("/api/1/sql", method="POST", body=body)
        asked = body.decode(errors="replace")
    else:
        sane = {
            "report": 0,
            "begin": 0,
            "end": 60_000,
            "width": 400,
            "tracks": "0-40",
            "from": 0,
            "limit": 50,
            "kind": "kernels",
            "time": 5,
        }
        sane |= {
            "table": chance.choice(("nvtx_ranges", "kernels", "cuda_api", "samples")),
            "process": 0,
            "row": chance.randrange(4),
        }
        sane |= {"text": chance.choice(("step", "", "(", "a" * 300)), "regex": chance.choice(("0", "1"))}
        for key in chance.sample(sorted(sane), chance.choice((0, 1, 2))):
            sane[key] = _text(chance)
        asked = f"/api/1/{quote(name, safe='/-_', errors='surrogatepass')}?{urlencode(sane, errors='surrogatepass')}"
        answer = client.ask(asked)
    if answer.status not in (200, 400, 404, 409, 413, 500, 503):
        raise Wrong(f"{asked} was answered with {answer.status}")
    if answer.status != 200:
        said = answer.json["error"]
        if "went wrong in the server" in said or "took more memory" in said:
            raise Wrong(f"{asked} was answered with {answer.status}: {said}")


def _text(chance: random.Random) -> str:
    value = chance.choice(
        (*ODD, *NUMBERS, "1-", "9-1", "1,2,x", "0-99999999999", "99999999999999999999", "1" * 5_000)
    )
    return value if isinstance(value, str) else str(value)


def _sql(chance: random.Random) -> str:
    words = [
        "SELECT",
        "FROM",
        "nvtx_ranges",
        "kernels",
        "*",
        "(",
        ")",
        ",",
        "1",
        "'x'",
        "start",
        '"',
        "WHERE",
        "repeat('x', 99999999)",
        "JOIN",
        "WITH",
    ]
    words += [
        "range(1000000000)",
        "list(range)",
        "x AS",
        "UNION ALL",
        "RECURSIVE",
        "LIMIT",
        "-1",
        "\0",
        "\ud800",
        "(" * 3_000,
        "read_text('/etc/passwd')",
    ]
    if chance.random() < 0.5:
        return chance.choice(QUESTIONS)
    return "SELECT " + " ".join(chance.choice(words) for _ in range(chance.randrange(1, 12)))
