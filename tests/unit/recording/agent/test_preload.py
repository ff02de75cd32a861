"""LD_PRELOAD: the user's libraries stay, and ours can lie anywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.recording.agent.preload import StubPath, added, listable


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "/w/stub.so"),
        ("", "/w/stub.so"),
        ("/a.so:/b.so", "/a.so:/b.so:/w/stub.so"),
        ("/a.so /b.so", "/a.so /b.so:/w/stub.so"),
        ("/a.so:/w/stub.so", "/a.so:/w/stub.so"),
        ("/w/stub.so /a.so", "/w/stub.so /a.so"),
        ("/w/stub.so.old", "/w/stub.so.old:/w/stub.so"),
    ],
)
def test_ours_comes_last_and_once(before: str | None, after: str) -> None:
    assert added(before, "/w/stub.so") == after


def test_a_plain_path_is_taken_as_it_is() -> None:
    stub = StubPath.of("/w/stub.so", {})
    assert stub.path == "/w/stub.so"
    stub.remove()


@pytest.mark.parametrize("folder", ["a b", "a:b", "a$LIB"])
def test_a_path_that_the_loader_would_cut_gets_a_link(folder: str, tmp_path: Path) -> None:
    library = tmp_path / folder / "stub.so"
    library.parent.mkdir()
    library.write_bytes(b"x")
    runtime = tmp_path / "run"
    runtime.mkdir()
    stub = StubPath.of(str(library), {"XDG_RUNTIME_DIR": str(runtime)})
    assert stub.path is not None
    assert listable(stub.path)
    assert Path(stub.path).read_bytes() == b"x"
    own = Path(stub.path).parent
    assert own.parent == runtime
    assert own.stat().st_mode & 0o777 == 0o711  # nobody else can put anything there, or list it
    stub.remove()
    assert list(runtime.iterdir()) == []


def test_two_links_never_meet(tmp_path: Path) -> None:
    first, second = (
        StubPath.of(str(tmp_path / "a b.so"), {"XDG_RUNTIME_DIR": str(tmp_path)}) for _ in range(2)
    )
    assert first.path != second.path
    first.remove()
    second.remove()
