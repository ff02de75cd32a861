"""Pages that were taken out of a spool come back byte for byte, also after the process that takes them out is killed."""

from __future__ import annotations

import io
import mmap
import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplens.spool import packed
from warplens.spool.layout import PAGE
from warplens.spool.packed import MOST

STRIDE = 40


def spool(folder: Path, pages: int) -> Path:
    """Write a file of records that look like those of a thread."""
    numbers = np.arange(pages * PAGE // 8, dtype="<u8")
    words = np.where(numbers % 5 == 1, 1000 * numbers + numbers * 7919 % 500, numbers % 5)
    path = folder / "h-1-2.spool"
    path.write_bytes(words.astype("<u8").tobytes())
    return path


def on_disk(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.iterdir())


@pytest.mark.parametrize("stride", [8, 24, 40, 64, 4096])
@pytest.mark.parametrize(("first", "pages"), [(0, 1), (3, 2), (1, 5)])
def test_a_block_says_what_it_was_made_of(first: int, pages: int, stride: int) -> None:
    data = random.Random(stride).randbytes(pages * PAGE)
    block = packed.encode(first * PAGE, np.frombuffer(data, np.uint8), stride)
    (decoded,) = packed.decode(_file(block), 8 * PAGE)
    assert decoded == (first * PAGE, data)


def test_space_is_given_back_and_the_bytes_come_back(tmp_path: Path) -> None:
    path = spool(tmp_path, 1000)
    before, size = path.read_bytes(), on_disk(tmp_path)
    spans = [(PAGE, 300 * PAGE), (301 * PAGE, 999 * PAGE)]
    assert packed.take_out(path, spans[:1], STRIDE) == 299 * PAGE
    assert packed.take_out(path, spans[1:], STRIDE) == 698 * PAGE
    assert on_disk(tmp_path) < size / 4
    left = path.read_bytes()
    assert (left[:PAGE], left[300 * PAGE : 301 * PAGE]) == (before[:PAGE], before[300 * PAGE : 301 * PAGE])
    assert not any(left[PAGE : 300 * PAGE])
    with packed.whole(tmp_path, live=True) as made:
        assert path.read_bytes() == before
        assert packed.take_out(path, [(999 * PAGE, 1000 * PAGE)], STRIDE) == 0  # somebody reads
        assert made == packed.Whole()
    assert path.read_bytes() == left
    with packed.whole(tmp_path):
        pass
    assert path.read_bytes() == before


@pytest.mark.parametrize("cut", [1, 20, 40, 2000])
def test_a_copy_that_was_cut_off_harms_nobody(tmp_path: Path, cut: int) -> None:
    """A process that is killed while it writes a copy has not taken the pages out yet."""
    path = spool(tmp_path, 64)
    before = path.read_bytes()
    packed.take_out(path, [(PAGE, 32 * PAGE)], STRIDE)
    block = packed.encode(40 * PAGE, np.frombuffer(before[40 * PAGE : 60 * PAGE], np.uint8), STRIDE)
    with (tmp_path / "h-1-2.spool.packed").open("ab") as file:
        file.write(block[:cut])
    with packed.whole(tmp_path) as made:
        assert path.read_bytes() == before
        assert made == packed.Whole()


def test_a_damaged_copy_is_named(tmp_path: Path) -> None:
    path = spool(tmp_path, 64)
    before = path.read_bytes()
    packed.take_out(path, [(PAGE, 9 * PAGE)], STRIDE)
    packed.take_out(path, [(20 * PAGE, 40 * PAGE)], STRIDE)
    copies = bytearray((tmp_path / "h-1-2.spool.packed").read_bytes())
    copies[60] ^= 1
    (tmp_path / "h-1-2.spool.packed").write_bytes(copies)
    with packed.whole(tmp_path) as made:
        (note,) = made.notes
        assert (note.code, note.count) == ("spool-damaged", 1)
        assert path.read_bytes() == before[:PAGE] + bytes(8 * PAGE) + before[9 * PAGE :]


@pytest.mark.require("tmpfs")
def test_a_full_disk_restores_pages_in_memory(tmpfs: Callable[[str], Path]) -> None:
    disk = tmpfs("size=1m")
    path = spool(disk, 200)
    before = path.read_bytes()
    packed.take_out(path, [(PAGE, 199 * PAGE)], STRIDE)
    (disk / "filler").write_bytes(bytes(600 << 10))
    with pytest.raises(OSError, match="No space left"), packed.whole(disk):
        pass
    free = os.statvfs(disk).f_bavail
    with packed.whole(disk, memory=len(before)) as made:
        assert made.in_memory == {path.name}
        assert os.statvfs(disk).f_bavail == free  # what was put back in vain is gone again
        copy = mmap.mmap(-1, len(before))
        copy.write(path.read_bytes())
        packed.fill(path, copy)
        assert copy[:] == before


@given(st.binary(max_size=200))
def test_rubbish_is_never_written_anywhere(rubbish: bytes) -> None:
    blocks = [packed.encode(0, np.zeros(PAGE, np.uint8), STRIDE), rubbish]
    assert [block for block in packed.decode(_file(b"".join(blocks)), PAGE) if block is not None] == [
        (0, bytes(PAGE))
    ]


def test_a_block_never_leads_out_of_the_spool() -> None:
    block = packed.encode(4 * PAGE, np.zeros(PAGE, np.uint8), STRIDE)
    assert list(packed.decode(_file(block), 4 * PAGE)) == [None]
    assert MOST % PAGE == 0


def _file(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)
