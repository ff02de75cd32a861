"""Every function that the larger stub wraps, called once: result, errno and what was read are those of the function itself."""

from __future__ import annotations

import errno
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment
from tests.support.programs.wrapper_calls import LEFT_OUT, NOT_TOLD, ONLY_WAITING, source, table
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native", "gcc"), pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrappers")
    (folder / "calls.c").write_text(source(), encoding="utf-8")
    # Not optimized: else functions are called by other names.
    command = ["gcc", "-O0", "-w", "calls.c", "-o", "calls", "-pthread", "-lutil", "-lrt"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "calls"


def test_every_wrapper_does_what_the_function_does(calls: Path, tmp_path: Path) -> None:
    bare, with_us = tmp_path / "bare", tmp_path / "with"
    bare.mkdir()
    with_us.mkdir()
    alone = subprocess.run(
        [calls], cwd=bare, env=environment(), text=True, capture_output=True, check=False, timeout=300
    )
    assert alone.returncode == 0, alone.stderr
    options = ("-t", "osrt", "--osrt-threshold", "0", "--osrt-file-access")
    command = [*COMMAND, "profile", "--light", "-q", "-o", str(tmp_path / "x"), *options, str(calls)]
    done = subprocess.run(
        command, cwd=with_us, env=environment(), text=True, capture_output=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, alone.stdout.splitlines())
    ended = dict(re.findall(r"^(\w+) ended (\d+)$", alone.stdout, re.MULTILINE))
    assert ended.keys() == {one.name for one in table()} - LEFT_OUT
    with open_report(tmp_path / "x.warplens") as report:
        rows = report.sql("SELECT DISTINCT name, error FROM osrt").to_pylist()
    seen = {(row["name"], row["error"]) for row in rows}
    wanted = {
        one.name for one in table() if not one.name.startswith("__") and not ONLY_WAITING.fullmatch(one.name)
    }
    assert wanted - LEFT_OUT - NOT_TOLD - {name for name, _ in seen} == set()
    failed = re.findall(r"^(\w+) = -1 errno (\d+)", alone.stdout, re.MULTILINE)
    told = {
        (name, errno.errorcode[int(number)])
        for name, number in failed
        if number != "0" and name in wanted - NOT_TOLD
    }
    assert len(told) > 40
    assert told - seen == set()
