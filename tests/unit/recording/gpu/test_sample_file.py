"""A file of samples that is as large as what is kept of it, and counts against --max-size."""

from __future__ import annotations

import json
from pathlib import Path

from warplens.recording.sample_file import STEP, SampleFile

HEAD = json.dumps({"gpus": []})
TEXT = "x" * 200


def lines(path: Path) -> list[int]:
    """The times of the samples."""
    head, *rest = path.read_text().splitlines()
    assert head == HEAD
    return [json.loads(line)[0] for line in rest]


def test_without_a_limit_all_samples_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "x"
    file = SampleFile(path, HEAD, lambda count: True, None)
    assert all(file.add(json.dumps([time, TEXT])) for time in range(1, 10_000))
    assert lines(path) == list(range(1, 10_000))


def test_a_flight_recorder_has_the_latest_and_what_was_saved(tmp_path: Path) -> None:
    """As many samples as fill the file several times."""
    path = tmp_path / "x"
    now = 0
    charged = 0

    def charge(count: int) -> bool:
        nonlocal charged
        charged += count
        return True

    file = SampleFile(path, HEAD, charge, lambda time: time > now - 600 or 100 <= time < 200)
    for now in range(1, 20_000):
        assert file.add(json.dumps([now, TEXT]))
        assert now % 1000 or path.stat().st_size <= 1_500_000
    kept = lines(path)
    assert kept[-600:] == list(range(19_400, 20_000))
    assert kept[:100] == list(range(100, 200))
    assert path.stat().st_size <= charged <= path.stat().st_size + 20 * STEP


def test_a_sample_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    room = 3 * STEP

    def charge(count: int) -> bool:
        nonlocal room
        if count > room:
            return False
        room -= count
        return True

    file = SampleFile(tmp_path / "x", HEAD, charge, None)
    written = [file.add(json.dumps([time, TEXT])) for time in range(2000)]
    assert written[:800] == [True] * 800
    assert not any(written[1000:])
    assert (tmp_path / "x").stat().st_size <= 3 * STEP


def test_a_folder_that_is_gone_costs_samples(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    file = SampleFile(tmp_path / "folder" / "x", HEAD, lambda count: True, None)
    (tmp_path / "folder" / "x").unlink()
    (tmp_path / "folder").rmdir()
    assert not file.add("[1]")
