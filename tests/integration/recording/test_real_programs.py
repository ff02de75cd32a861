"""Programs of others, unchanged: each runs twice in the same folder, alone and under `warplens profile`, and must do the same."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.programs.launching import COMMAND, environment, info, until
from tests.support.thorough import few
from tests.torture.truth import alive_in
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native")]


@dataclass(frozen=True)
class Ended:
    """How a program ended: exit code, what it wrote, and its files (path -> contents) where they were asked for."""

    code: int
    out: str
    err: str
    files: dict[str, bytes]


def _files(folder: Path, patterns: tuple[str, ...]) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for pattern in patterns
        for path in sorted(folder.glob(pattern))
        if path.is_file()
    }


def run(
    place: Path,
    words: list[str],
    *,
    profiled: bool,
    prepare: Callable[[Path], None],
    patterns: tuple[str, ...],
    **variables: str,
) -> Ended:
    """Run a program in a fresh folder, always of the same name, so that paths in its output are the same."""
    folder = place / "work"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    prepare(folder)
    command = (
        [*COMMAND, "profile", "--light", "-q", "-f", "-o", str(place / "x"), *words] if profiled else words
    )
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    until(lambda: not alive_in(folder), "what the program left")
    return Ended(done.returncode, done.stdout, done.stderr, _files(folder, patterns))


def same(
    place: Path,
    words: list[str],
    prepare: Callable[[Path], None] = lambda folder: None,
    patterns: tuple[str, ...] = (),
    lines: Callable[[str], object] = lambda text: text,
    **variables: str,
) -> Ended:
    """Run a program alone and under the launcher; output (as `lines` sees it), exit code and files must not differ."""
    alone, ours = (
        run(place, words, profiled=profiled, prepare=prepare, patterns=patterns, **variables)
        for profiled in (False, True)
    )
    assert (ours.code, lines(ours.out), lines(ours.err)) == (alone.code, lines(alone.out), lines(alone.err))
    assert sorted(ours.files) == sorted(alone.files)
    assert [name for name in ours.files if ours.files[name] != alone.files[name]] == []
    assert info(place / "x.warplens")["parts"][0]["exit_status"] == alone.code
    return ours


GIT = """
set -e
export HOME="$PWD" GIT_CONFIG_NOSYSTEM=1 LC_ALL=C TZ=UTC
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=c GIT_COMMITTER_EMAIL=c@d
export GIT_AUTHOR_DATE="1700000000 +0000" GIT_COMMITTER_DATE="1700000000 +0000"
git init -q -b main one && cd one
git config gc.autoDetach false
printf '#!/bin/sh\\necho "hook $0" >&2\\n' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit
for number in $(seq 30); do
  seq "$number" > "file$((number % 5))"
  git add . && git commit -q -m "commit $number"
done
git checkout -q -b topic HEAD~10
for number in 1 2 3; do echo "$number" > "topic$number"; git add . && git commit -q -m "topic $number"; done
git rebase -q main
git -c advice.mergeConflict=false merge --no-ff -m merged main || true
git log --format='%H %s' | head -n 5
git gc -q --prune=now
git fsck --full --strict
git repack -q -a -d -f --threads=4
cd .. && git clone -q --no-local one two && cd two && git rev-parse HEAD HEAD^{tree}
git grep -c 7 | sort
git archive HEAD | git get-tar-commit-id || true
git for-each-ref --format='%(refname) %(objectname)'
git bisect start -q HEAD HEAD~8 >/dev/null && git bisect run sh -c 'test ! -e topic3' || true
git stash list; git no-such-command || echo "exit $?"
"""


@pytest.mark.require("git")
def test_git(tmp_path: Path) -> None:
    ended = same(tmp_path, ["sh", "-c", GIT], patterns=("one/.git/packed-refs", "one/file*", "two/file*"))
    assert ended.code == 0, ended.err
    assert "hook .git/hooks/pre-commit" in ended.err


def _c_project(folder: Path) -> None:
    names = [f"part{number}" for number in range(16)]
    for name in names:
        (folder / f"{name}.c").write_text(f'int {name}(void) {{ return sizeof("{name}"); }}\n')
    calls = " + ".join(f"{name}()" for name in names)
    declared = "".join(f"int {name}(void);\n" for name in names)
    (folder / "main.c").write_text(
        f'#include <stdio.h>\n{declared}int main(void) {{ printf("%d\\n", {calls}); return 3; }}\n'
    )
    objects = " ".join(f"{name}.o" for name in [*names, "main"])
    (folder / "Makefile").write_text(
        f"all: program\n\t@$(MAKE) --no-print-directory -f Makefile run\nprogram: {objects}\n\t$(CC) -o $@ $^\n"
        "run:\n\t./program; test $$? = 3\n\t./program > out || true\nbad:\n\tfalse\n.PHONY: all run bad\n"
    )


@pytest.mark.require("make", "gcc")
def test_a_parallel_build(tmp_path: Path) -> None:
    """The order of lines is chance; the jobserver's pipe is inherited by everything."""
    same(
        tmp_path,
        ["make", "-j4", "--output-sync"],
        _c_project,
        ("program", "out", "*.o"),
        lambda text: sorted(text.splitlines()),
    )
    failed = same(tmp_path, ["make", "-j4", "bad"], _c_project)
    assert failed.code == 2


def _wheel(folder: Path) -> None:
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(folder / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny/__init__.py", "def main():\n    print('tiny')\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
        wheel.writestr(
            f"{info}/RECORD", "".join(f"{name},,\n" for name in [*wheel.namelist(), f"{info}/RECORD"])
        )


@pytest.mark.require("pip")
@pytest.mark.exhaustive
def test_pip_installs_into_a_fresh_environment(tmp_path: Path) -> None:
    line = """
set -e
"$0" -m venv --without-pip fresh
"$0" -m pip --python fresh/bin/python install --no-index --find-links . --disable-pip-version-check --no-color --no-cache-dir tiny
fresh/bin/tiny
"$0" -m pip --python fresh/bin/python list --disable-pip-version-check
"$0" -m pip --python fresh/bin/python install --no-index --disable-pip-version-check --no-color nothing-like-it
"""
    ended = same(
        tmp_path,
        ["sh", "-c", line, sys.executable],
        _wheel,
        ("fresh/bin/tiny", "fresh/lib/*/site-packages/tiny/*.py"),
        PIP_ROOT_USER_ACTION="ignore",
    )
    assert ended.code == 1
    assert "\ntiny\n" in ended.out
    assert "No matching distribution found for nothing-like-it" in ended.err


@pytest.mark.exhaustive
@pytest.mark.require("stdlib-tests")
def test_a_test_suite_of_pure_python(tmp_path: Path) -> None:
    """Some of CPython's own tests: of text, of children with every kind of environment and descriptors, of the system's calls."""
    names = ["test.test_textwrap", "test.test_json", "test.test_popen", "test.test_posix", "test.test_os"]
    words = [sys.executable, "-X", "utf8", "-m", "unittest", "-v", *names]
    outcome = re.compile(r"in [\d.]+s|0x[0-9a-f]+|\b\d{3,}\b")
    ended = same(tmp_path, words, lines=lambda text: sorted(outcome.sub("", text).splitlines()))
    assert re.search(r"^Ran \d{3,} tests", ended.err, re.MULTILINE), ended.err[-2000:]


def _free_port() -> int:
    with closing(socket.socket()) as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return bytes(answer.read())


def _answers(url: str) -> bool:
    try:
        return bool(_get(url))
    except OSError:
        return False


def _served(place: Path, number: int, *, profiled: bool) -> tuple[int, str, list[str]]:
    """Serve 500 requests, then stop by a signal; return exit code and output without port and requests."""
    work, port = place / "work", _free_port()
    url = f"http://127.0.0.1:{port}/page"
    words = [sys.executable, "-u", "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    command = [*COMMAND, "profile", "--light", "-q", "-o", str(place / "x"), *words] if profiled else words
    with open(place / "err", "w", encoding="utf-8") as stderr:
        server = subprocess.Popen(
            command, cwd=work, env=environment(), stdout=subprocess.PIPE, stderr=stderr, text=True
        )
    try:
        until(lambda: _answers(url), "the server")
        with ThreadPoolExecutor(8) as pool:
            pages = set(pool.map(_get, [url] * 500))
        assert pages == {(work / "page").read_bytes()}
        server.send_signal(number)
        out, _ = server.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    err = (place / "err").read_text(encoding="utf-8")
    assert err.count('"GET /page HTTP/1.1" 200') >= 501
    code = server.returncode if server.returncode >= 0 else 128 - server.returncode
    return (
        code,
        out.replace(str(port), "PORT"),
        [line for line in err.splitlines() if "GET /page" not in line],
    )


@pytest.mark.parametrize("number", few([signal.SIGTERM, signal.SIGINT]), ids=["SIGTERM", "SIGINT"])
def test_a_web_server_under_load(number: int, tmp_path: Path) -> None:
    """Thousands of threads, one per request, then a stop from the terminal or from a service manager."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "page").write_bytes(os.urandom(20_000))
    ends = [_served(tmp_path, number, profiled=profiled) for profiled in (False, True)]
    assert ends[1] == ends[0]
    facts = info(tmp_path / "x.warplens")
    assert facts["parts"][0]["exit_status"] == ends[0][0]


APPLICATION = """
import os
from warplens import nvtx

log = os.open("requests", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

def app(environ, start_response):
    number = int(environ["PATH_INFO"].rpartition("/")[2])
    with nvtx.annotate("request", payload=number):
        body = b"%d %d" % (os.getpid(), number)
    os.write(log, b"%10d %10d\\n" % (os.getpid(), number))
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


@pytest.mark.require("gunicorn")
def test_a_server_that_restarts_its_workers(tmp_path: Path) -> None:
    """A worker is killed, then all are replaced (HUP), while requests come in: every request that was answered is in the report."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "web.py").write_text(APPLICATION)
    port = _free_port()
    words = [
        sys.executable,
        "-m",
        "gunicorn",
        "--workers",
        "2",
        "--bind",
        f"127.0.0.1:{port}",
        "--pid",
        "pid",
        "web:app",
    ]
    words += ["--max-requests", "150", "--graceful-timeout", "10", "--log-level", "warning"]
    server = subprocess.Popen(
        [*COMMAND, "profile", "--light", "-q", "-o", str(tmp_path / "x"), *words],
        cwd=work,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    answered: list[tuple[int, int]] = []

    def ask(number: int) -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:  # a worker that is killed answers nobody
            try:
                pid, back = map(int, _get(f"http://127.0.0.1:{port}/{number}").split())
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)
                continue
            assert back == number
            answered.append((pid, number))
            return
        raise AssertionError(f"no answer to request {number}")

    asked = 0

    def ask_until_there_are(workers: int, but: Collection[int] = ()) -> None:
        nonlocal asked
        end = time.monotonic() + 100
        with ThreadPoolExecutor(4) as pool:
            while len({pid for pid, _ in answered} - set(but)) < workers:
                assert time.monotonic() < end, (workers, but, answered[-1])
                list(pool.map(ask, range(asked + 1, asked + 101)))
                asked += 100

    try:
        until(lambda: _answers(f"http://127.0.0.1:{port}/0"), "the server")
        master = int((work / "pid").read_text())
        ask_until_there_are(2)
        os.kill(answered[-1][0], signal.SIGKILL)
        ask_until_there_are(3)
        before = {pid for pid, _ in answered}
        os.kill(master, signal.SIGHUP)
        ask_until_there_are(2, but=before)
        server.send_signal(signal.SIGTERM)
        out, err = server.communicate(timeout=60)
    finally:
        server.kill()
        server.wait()
    assert (server.returncode, out) == (0, ""), err
    assert "Traceback" not in err
    noted = {tuple(map(int, line.split())) for line in (work / "requests").read_text().splitlines()}
    assert {number for _, number in answered} == set(range(1, asked + 1))
    assert len({pid for pid, _ in noted}) >= 5  # two, one for the killed one, two after the HUP
    with open_report(tmp_path / "x.warplens") as report:
        rows = report.sql(
            "SELECT p.pid AS pid, r.payload_int AS number FROM nvtx_ranges r JOIN processes p ON p.process = r.process"
        ).to_pylist()
    assert noted - {(row["pid"], row["number"]) for row in rows} == set()
