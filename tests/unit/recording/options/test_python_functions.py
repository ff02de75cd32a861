"""The file that names Python functions to trace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warplens.errors import UsageError
from warplens.recording.options.python_functions import FILE, PythonFunction, read_functions, write_functions


def _write(folder: Path, given: Any) -> Path:
    path = folder / "functions.json"
    path.write_text(given if isinstance(given, str) else json.dumps(given), encoding="utf-8")
    return path


def test_reads_what_nsys_reads(tmp_path: Path) -> None:
    """Modules with a colour and dotted names; comments are passed over."""
    given = [
        {"_comment": "x", "module": "a.b", "color": "green", "domain": "d", "functions": ["f", "C.m"]},
        {"module": "__main__", "functions": ["g"]},
    ]
    assert read_functions(_write(tmp_path, given)) == (
        PythonFunction("a.b", "f", 0xFF008000),
        PythonFunction("a.b", "C.m", 0xFF008000),
        PythonFunction("__main__", "g"),
    )


@pytest.mark.parametrize(
    ("color", "number"),
    [("#102030", 0xFF102030), ("0xAbCdEf", 0xFFABCDEF), (255, 0xFF0000FF), ("Red", 0xFFFF0000)],
)
def test_colours(tmp_path: Path, color: object, number: int) -> None:
    """Names, hexadecimal digits, numbers."""
    (function,) = read_functions(_write(tmp_path, [{"module": "m", "functions": ["f"], "color": color}]))
    assert function.color == number


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("{", "not JSON"),
        ("[]", "not a list of modules"),
        ("3", "not a list of modules"),
        (["m"], "entry 1 is not an object"),
        ([{"module": "m", "functions": ["f"], "colour": "red"}], 'unknown key "colour"'),
        ([{"functions": ["f"]}], '"module" must be'),
        ([{"module": "m\tn", "functions": ["f"]}], '"module" must be'),
        ([{"module": "m"}], '"functions" must be'),
        ([{"module": "m", "functions": []}], '"functions" must be'),
        (
            [{"module": "m", "functions": ["f"]}, {"module": "m", "functions": ["f()"]}],
            'entry 2: "functions" must be',
        ),
        ([{"module": "m", "functions": ["f"], "color": "no such"}], "unknown color"),
        ([{"module": "m", "functions": ["f"], "color": True}], "unknown color"),
    ],
)
def test_says_what_is_wrong(tmp_path: Path, given: object, said: str) -> None:
    """With the file, the entry and what to write."""
    path = _write(tmp_path, given)
    with pytest.raises(UsageError) as caught:
        read_functions(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_is_written_down_for_the_agents(tmp_path: Path) -> None:
    """A function a line."""
    path = _write(
        tmp_path,
        [{"module": "m", "functions": ["f", "C.g"], "color": "blue"}, {"module": "n", "functions": ["h"]}],
    )
    write_functions(path, tmp_path)
    assert (tmp_path / FILE).read_text() == "m\tff0000ff\tf\nm\tff0000ff\tC.g\nn\t\th\n"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    """It is said which."""
    with pytest.raises(UsageError, match="cannot be read"):
        read_functions(tmp_path / "none.json")
