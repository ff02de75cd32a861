"""Names in a spool, for the note about a capture range that never came; spool files are not trusted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from warplens.errors import UsageError
from warplens.recording.options.settings import capture_name
from warplens.recording.windows.names_seen import like, names_seen


def _file(*strings: bytes) -> bytes:
    content = b""
    for number, text in enumerate(strings, 1):
        content += (len(text) + 1).to_bytes(4, "little") + number.to_bytes(4, "little") + text
        content += bytes(-len(content) % 8)
    size = 64 + len(content) + 8
    header = bytearray(4096)
    header[12:16] = (4096).to_bytes(4, "little")
    header[64:72] = (4096 + size).to_bytes(8, "little")
    chunk = b"WCHK" + bytes((2, 0, 0, 0)) + size.to_bytes(8, "little")
    return bytes(header) + chunk.ljust(64, b"\0") + content + bytes(8)


def test_names(tmp_path: Path) -> None:
    (tmp_path / "a.spool").write_bytes(_file(b"step", "größe".encode(), b'{"schema": 1}'))
    (tmp_path / "b.spool").write_bytes(_file(b"load", b"", b"\xff"))
    assert names_seen(tmp_path) == {"step", "größe", "load", "", "\ufffd"}


def test_broken_files_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    whole = _file(b"step", b"load", b"x" * 100)
    chance = random.Random(4)
    for number in range(300):
        broken = bytearray(whole[: chance.randrange(len(whole) + 1)])
        for _ in range(chance.randrange(8)):
            if broken:
                broken[
                    chance.choice((12, 64, 65, 4104, 4160, chance.randrange(len(broken)))) % len(broken)
                ] = chance.randrange(256)
        (tmp_path / "a.spool").write_bytes(broken)
        assert isinstance(names_seen(tmp_path), set), number


def test_similar_names_are_suggested() -> None:
    names = {"Step", "train_step", "load", "stop", "step"}
    assert like("step", names)[0] == "Step"
    assert set(like("step", names)) == {"Step", "stop", "train_step"}
    assert like("forward", names) == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("step", ("step", "", False)),
        ("step@train", ("step", "train", False)),
        ("step@*", ("step", "", True)),
        ("step@", ("step", "", False)),
        (r"a\@b", ("a@b", "", False)),
        (r"a\@b@c\@d", ("a@b", "c@d", False)),
        (r"step@\*", ("step", "*", False)),
        ("a\\\\@b", ("a\\", "b", False)),
        ("two words@Ä", ("two words", "Ä", False)),
    ],
)
def test_how_a_capture_range_is_named(text: str, name: tuple[str, str, bool]) -> None:
    assert capture_name(text) == name


@pytest.mark.parametrize("text", ["", "@d", "a@b@c"])
def test_a_text_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        capture_name(text)
