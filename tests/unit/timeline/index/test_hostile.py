"""Files that are no index, or one that somebody broke: refused, or answered from without harm."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.unit.timeline.index.slices import LAYERS, at_random, build
from warplens.errors import ReportError
from warplens.timeline.index import IndexBuilder, LaneIndex
from warplens.timeline.index.layout import HEADER, SECTIONS

FAR = 1 << 61


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("index")
    return build(folder / "good.lanes", at_random(0, 900)).read_bytes()


def ask_everything(path: Path) -> None:
    """Ask an index all that can be asked; ReportError if it is refused."""
    with LaneIndex(path) as index:
        tracks = [*range(min(len(index.tracks), 50)), 1 << 31]
        index.viewport(-FAR, FAR, 100, tracks, 500)
        index.viewport(0, 20_000, 1 << 40, tracks, 1 << 16)
        everything = range(min(len(index.names), 1000))
        for backward in (False, True):
            index.find(everything, -FAR, FAR, 300, backward, tracks)
        index.busy(tracks, -100, 20_000)
        index.sums(tracks, -100, 20_000)
        index.locate("kernels", 0, 5)
        index.locate("kernels", 1, 5, 100)
        for track in tracks:
            index.at(track, 0, 500)
        index.names.search("gem")
        for number in everything:
            (
                index.names.text(number),
                index.names.layer(number),
                index.names.color(number),
                index.names.count(number),
            )


@pytest.mark.parametrize("size", [0, 1, 100, HEADER, HEADER + 1, 5_000, -1])
def test_a_file_that_was_cut_is_refused_by_name(tmp_path: Path, good: bytes, size: int) -> None:
    path = tmp_path / "x.lanes"
    path.write_bytes(good[:size])
    with pytest.raises(ReportError, match="is not a readable index") as caught:
        LaneIndex(path)
    assert str(path) in str(caught.value)


def test_other_files_and_versions_are_refused(tmp_path: Path, good: bytes) -> None:
    for number, data in enumerate(
        (b"x" * 1000, b"PAR1" + bytes(1000), good[:8] + struct.pack("<Q", 99) + good[16:], good + b"x")
    ):
        (tmp_path / f"{number}.lanes").write_bytes(data)
        with pytest.raises(ReportError, match="is not a readable index"):
            LaneIndex(tmp_path / f"{number}.lanes")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_broken_bytes_do_no_harm(tmp_path: Path, good: bytes, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        data = bytearray(good)
        for _ in range(rng.choice((1, 1, 3, 40))):
            at = rng.choice(
                (rng.randrange(len(data)), rng.randrange(HEADER), rng.randrange(len(data) // 2, len(data)))
            )
            value = rng.choice((0, 0xFF, rng.randrange(256)))
            width = rng.choice((1, 4, 8))
            data[at : at + width] = bytes([value]) * len(data[at : at + width])
        path = tmp_path / "x.lanes"
        path.write_bytes(data)
        try:
            ask_everything(path)
        except (ReportError, UnicodeDecodeError):
            pass


@pytest.mark.parametrize("section", ["nodes", "lanes", "tracks", "names", "offsets"])
def test_sections_of_garbage_do_no_harm(tmp_path: Path, good: bytes, section: str) -> None:
    offset, size = struct.unpack_from("<QQ", good, 24 + 16 * SECTIONS.index(section))
    rng = np.random.default_rng(7)
    for kind in range(12):
        junk = [bytes(size), b"\xff" * size, rng.bytes(size), b"\x7f" * size, b"\x80" * size][kind % 5]
        part = good[offset : offset + size]
        mixed = (
            bytes(b if rng.random() < 0.9 else j for b, j in zip(part, junk, strict=True))
            if kind > 4
            else junk
        )
        (tmp_path / "x.lanes").write_bytes(good[:offset] + mixed + good[offset + size :])
        try:
            ask_everything(tmp_path / "x.lanes")
        except ReportError:
            pass


def test_impossible_times_depths_and_names_are_kept_within_bounds(tmp_path: Path) -> None:
    edge = (-(1 << 63), -(1 << 62), -1, 0, 1, (1 << 62) - 1, (1 << 63) - 1)
    pairs = [(start, end) for start in edge for end in edge]
    path = tmp_path / "x.lanes"
    with IndexBuilder(path, LAYERS) as builder:
        rows = pa.table(
            {
                "start": pa.array([start for start, _ in pairs], pa.int64()),
                "end": pa.array([end for _, end in pairs], pa.int64()),
                "process": pa.array([-5 + number % 7 for number in range(len(pairs))], pa.int64()),
                "depth": pa.array(
                    [(-1, 0, 1 << 30, None)[number % 4] for number in range(len(pairs))], pa.int32()
                ),
                "id": pa.array([(1 << 63) - 1 - number for number in range(len(pairs))], pa.int64()),
                "link": pa.array(
                    [None if number % 2 else number for number in range(len(pairs))], pa.int64()
                ),
                "name": pa.array(
                    [None if number % 3 else "\0" * number for number in range(len(pairs))], pa.string()
                ),
            }
        )
        builder.add("kernels", rows)
        builder.add("kernels", rows)
        builder.add("kernels", rows.slice(0, 0))
        builder.commit()
    ask_everything(path)
    with LaneIndex(path) as index:
        assert sum(track.events for track in index.tracks) == 2 * len(pairs)
        assert int(index.viewport(-FAR, FAR + 1, 64).slices.sum()) == 2 * len(pairs)
        assert max(track.lanes for track in index.tracks) < 2_000


def test_a_builder_that_is_given_up_leaves_nothing(tmp_path: Path) -> None:
    def give_up() -> None:
        with IndexBuilder(tmp_path / "x.lanes", LAYERS) as builder:
            builder.add("marks", pa.table({"start": [1], "process": [0]}))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        give_up()
    assert list(tmp_path.iterdir()) == []
