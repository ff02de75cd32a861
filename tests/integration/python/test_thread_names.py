"""Threads have the whole names that Python gave them; the system has at most 15 bytes, and none before 3.14."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.programs.launching import warplens
from tests.support.programs.python_running import interpreters
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(300)]

PROGRAM = """
import concurrent.futures, threading, time

def work(name=None):
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        sum(range(500))
    if name is not None:
        threading.current_thread().name = name
        work()
        work()

class Many(threading.Thread):
    def __init__(self):
        super().__init__(name="Fädchen of more than 15 bytes")
        for number in range(40):
            setattr(self, f"attribute_{number}", number)
    def run(self):
        work()

class Slots(threading.Thread):
    __slots__ = ("more",)
    def run(self):
        work()

threads = [Many(), Slots(name="slots"), threading.Thread(target=work, args=("renamed",))]
threads[1].__dict__  # makes a dictionary of the attributes
for thread in threads:
    thread.start()
with concurrent.futures.ThreadPoolExecutor(1, thread_name_prefix="pool") as pool:
    pool.submit(work).result()
for thread in threads:
    thread.join()
"""


@pytest.mark.parametrize("python", interpreters())
def test_names_of_threads(python: str, tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(PROGRAM, encoding="utf-8")
    done = warplens("profile", "--python-sampling=true", "-q", "-o", "x", python, "p.py", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    with open_report(tmp_path / "x.warplens") as report:
        names = {row["name"] for row in report.table("threads", ["name"]).to_pylist()}
    assert names >= {"Fädchen of more than 15 bytes", "slots", "renamed", "pool_0"}
