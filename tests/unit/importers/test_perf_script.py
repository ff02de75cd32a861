"""What `perf script` prints becomes samples; lines as perf 6.1 prints them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import warplens
from warplens.errors import WarplensError
from warplens.importers.importing import format_of, import_file

TEXT = """\
# captured on: Fri Nov 27 2026
python3 32282 52962.360484:    5000000 cpu-clock:
\tffffffff8220193c _raw_spin_unlock+0xc ([kernel.kallsyms])
\t           d4353 _Fork+0x23 (/usr/lib/x86_64-linux-gnu/libc.so.6)

python3 32282/32290 [001] 52962.365484:    5000000 cpu-clock:pppH:
\t           14f38 _PyEval_EvalFrameDefault+0x158 (/usr/lib/libpython3.12.so.1.0)
\t    7f0000000010 py::work:/app/run.py+0x9 (/tmp/perf-32282.map)
\t           14f38 [unknown] (/usr/bin/some (deleted))

GPU worker 7 32282/32291 [000] 52962.370484:    2500000 cpu-clock:
""".replace(":\n", ": \n")  # as perf prints it


def imported(folder: Path, text: str) -> warplens.Report:
    path = folder / "run.perf"
    path.write_text(text, encoding="utf-8")
    assert format_of(path).id == "perf_script"
    import_file(path, folder / "run.warplens")
    return warplens.open(folder / "run.warplens")


def tables(report: warplens.Report) -> tuple[list[dict[str, Any]], dict[int, dict[str, Any]], list[str]]:
    frames = {row["frame"]: row for row in report.table("frames").to_pylist()}
    return (
        report.table("samples").to_pylist(),
        frames,
        [row["message"] for row in report.table("diagnostics").to_pylist()],
    )


def test_samples_have_threads_times_and_stacks(tmp_path: Path) -> None:
    with imported(tmp_path, TEXT) as report:
        samples, frames, told = tables(report)
        threads = {row["tid"]: row["name"] for row in report.table("threads").to_pylist()}
    assert threads == {32282: "python3", 32290: "python3", 32291: "GPU worker 7"}
    assert [(row["start"], row["weight"], row["kind"]) for row in samples] == [
        (0, 5_000_000, "native"),
        (5_000_000, 5_000_000, "python"),
        (10_000_000, 2_500_000, "native"),
    ]
    kernel = frames[samples[0]["stack"]]
    assert (kernel["kind"], kernel["function"], frames[kernel["parent"]]["module"]) == (
        "kernel",
        "_raw_spin_unlock",
        "libc.so.6",
    )
    inner = frames[samples[1]["stack"]]
    caller = frames[inner["parent"]]
    assert (caller["kind"], caller["function"], caller["file"]) == ("python", "work", "/app/run.py")
    assert samples[2]["stack"] is None
    assert told == []


def test_events_that_count_no_time_stand_for_the_usual_time(tmp_path: Path) -> None:
    text = "".join(
        f"a 7 1.{number:06}: 99999 cycles:u: \n\t 10 f+0x1 (/bin/a)\n\n" for number in range(0, 50, 10)
    )
    with imported(tmp_path, text + "a 7 1.000070: 1 branches: \n") as report:
        samples, _, told = tables(report)
    assert {row["weight"] for row in samples} == {10_000}
    assert len(samples) == 5
    assert any("does not count time" in message for message in told)
    assert any("samples of events other than" in message for message in told)


def test_text_without_a_sample_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "run.perf"
    path.write_text("main;load;read 12\n", encoding="utf-8")
    assert format_of(path).id == "collapsed"


@pytest.mark.slow
def test_damaged_files_end_in_a_report_or_an_error(tmp_path: Path) -> None:
    chance, whole = random.Random(6), TEXT.encode()
    for number in range(60):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 8)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        path = tmp_path / f"{number}.perf"
        path.write_bytes(damaged[: chance.choice((len(damaged), chance.randrange(len(damaged))))])
        told = str(path)
        try:
            import_file(path, tmp_path / f"{number}.warplens")
        except WarplensError as error:
            told = str(error)
        assert str(path) in told
