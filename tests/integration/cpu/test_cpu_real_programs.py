"""Programs that nobody here wrote, with everything of the CPU side switched on: they do and say what they do without us."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import environment
from tests.support.programs.under_everything import both, counts, same
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]

# The parts of CPython's own tests that are quick, need no network, and look at what we touch.
OWN_TESTS = ("test_bisect", "test_contextlib", "test_gc", "test_glob", "test_heapq")

MIX = """
import hashlib, multiprocessing, threading, zlib

def work(number):
    data = bytes(range(256)) * 4000
    return hashlib.sha256(zlib.compress(data * (number + 1), 1)).hexdigest()

if __name__ == "__main__":
    for how in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(how).Pool(2) as pool:
            print(how, pool.map(work, range(6)))
    found = {}
    threads = [threading.Thread(target=lambda n=n: found.setdefault(n, work(n))) for n in range(8)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    print(sorted(found.items()))
"""


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_git(tmp_path: Path) -> None:
    who = {
        f"GIT_{role}_{what}": text
        for role in ("AUTHOR", "COMMITTER")
        for what, text in (("NAME", "a"), ("EMAIL", "a@b"))
    }
    dates = {f"GIT_{role}_DATE": "2020-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")}
    env = environment(HOME=str(tmp_path), **who, **dates)
    script = (
        "rm -rf r; git init -q -b main r; cd r; i=0;"
        " while [ $i -lt 20 ]; do echo $i > f$i; git add .; git commit -q -m $i; i=$((i+1)); done;"
        " git gc -q; git log --stat --format=%H | cat; git fsck --strict"
    )
    bare, with_us, report = both(tmp_path, "sh", "-c", script, env=env)
    same(bare, with_us)
    assert counts(report)["file_access"] > 0
    assert counts(report)["processes"] > 20


NUMBERS = """
import hashlib
import numpy as np
from concurrent.futures import ThreadPoolExecutor
def one(seed):
    random = np.random.default_rng(seed)
    a = random.integers(0, 100, (200, 200))
    return int((a @ a.T).sum()), hashlib.sha256(np.sort(random.random(100_000)).tobytes()).hexdigest()
print([one(seed) for seed in range(4)])
with ThreadPoolExecutor(4) as pool:
    print(list(pool.map(one, range(8))))
a = np.linspace(0, 1, 40_000).reshape(200, 200)
print(np.linalg.matrix_rank(np.eye(60)), np.fft.rfft(np.arange(4096.0)).real.sum().round(3), np.einsum("ij,jk", a, a).sum().round(3))
"""


@pytest.mark.require("numpy")
def test_numpy(tmp_path: Path) -> None:
    (tmp_path / "arrays.py").write_text(NUMBERS, encoding="utf-8")
    bare, with_us, report = both(tmp_path, sys.executable, "arrays.py")
    same(bare, with_us)
    found = counts(report)
    assert min(found["osrt"], found["samples"], found["gil"], found["imports"]) > 0, found


@pytest.mark.exhaustive
def test_own_tests_of_python(tmp_path: Path) -> None:
    if importlib.util.find_spec("test.test_gc") is None:
        pytest.skip("this Python has no tests of its own")
    bare, with_us, report = both(
        tmp_path, sys.executable, "-m", "unittest", *(f"test.{name}" for name in OWN_TESTS)
    )
    ran = [
        re.findall(r"^(Ran \d+ tests|OK.*|FAILED.*)", re.sub(r" in [\d.]+s", "", run.stderr), re.MULTILINE)
        for run in (bare, with_us)
    ]
    assert ran[0] == ran[1], with_us.stderr[-3000:]
    assert with_us.returncode == bare.returncode
    assert counts(report)["imports"] > 0


@pytest.mark.exhaustive
def test_processes_and_threads(tmp_path: Path) -> None:
    (tmp_path / "mix.py").write_text(MIX, encoding="utf-8")
    bare, with_us, report = both(tmp_path, sys.executable, "mix.py")
    same(bare, with_us)
    found = counts(report)
    assert min(found["osrt"], found["samples"], found["gc"], found["imports"]) > 0, found
    assert found["processes"] >= 7


@pytest.mark.exhaustive
@pytest.mark.require("pip")
def test_pip_install(tmp_path: Path) -> None:
    package = tmp_path / "package"
    (package / "little").mkdir(parents=True)
    (package / "little" / "__init__.py").write_text("answer = 42\n", encoding="utf-8")
    import zipfile

    facts = "Metadata-Version: 2.1\nName: little\nVersion: 1.0\n"
    wheel = "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(tmp_path / "little-1.0-py3-none-any.whl", "w") as out:
        out.write(package / "little" / "__init__.py", "little/__init__.py")
        out.writestr("little-1.0.dist-info/METADATA", facts)
        out.writestr("little-1.0.dist-info/WHEEL", wheel)
        out.writestr("little-1.0.dist-info/RECORD", "little/__init__.py,,\nlittle-1.0.dist-info/RECORD,,\n")
    words = (
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--upgrade",
        "--target",
        "there",
    )
    bare, with_us, report = both(
        tmp_path, *words, "little-1.0-py3-none-any.whl", env=environment(PIP_DISABLE_PIP_VERSION_CHECK="1")
    )
    same(bare, with_us)
    assert (tmp_path / "there" / "little" / "__init__.py").read_text(encoding="utf-8") == "answer = 42\n"
    assert counts(report)["imports"] > 100


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="needs redis-server")
def test_redis(tmp_path: Path) -> None:
    script = """
        redis-server --port 0 --unixsocket "$PWD/s" --save '' --daemonize no > log & server=$!
        while ! redis-cli -s "$PWD/s" ping > /dev/null 2>&1; do sleep 0.05; done
        i=0; while [ $i -lt 50 ]; do redis-cli -s "$PWD/s" set k$i $i; i=$((i+1)); done
        redis-cli -s "$PWD/s" dbsize; redis-cli -s "$PWD/s" shutdown nosave; wait $server; echo "ended $?"
    """
    bare, with_us, report = both(tmp_path, "sh", "-c", script)
    same(bare, with_us)
    with open_report(report) as opened:
        waits = opened.sql("SELECT count(*) FROM osrt WHERE name = 'epoll_wait'").to_pylist()
    assert next(iter(waits[0].values())) > 0
