"""A user's seal: made once, kept private, and worth nothing to anybody else."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from warplens.handover import seals

FACTS = {"id": "x", "spool": "/somewhere", "ended": True}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_a_seal_holds_for_these_facts_only(state: Path) -> None:
    made = seals.sealed(FACTS)
    assert made == {**FACTS, "seal": made["seal"]}
    assert seals.is_own(made)
    assert seals.is_own(dict(reversed(list(made.items()))))
    assert not seals.is_own({**made, "spool": "/elsewhere"})
    assert not seals.is_own({**made, "seal": ""})
    assert not seals.is_own(FACTS)
    assert not seals.is_own({**made, "id": json.loads("[" * 900 + "]" * 900), "more": [[]]})
    assert [
        stat.S_IMODE(path.stat().st_mode) for path in (state / "warplens", state / "warplens" / "key")
    ] == [0o700, 0o600]


def test_another_user_seals_otherwise(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = seals.sealed(FACTS)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "mine"))
    assert not seals.is_own(theirs)
    assert not (tmp_path / "mine").exists()  # who only reads makes no key
    assert seals.sealed(FACTS)["seal"] not in ("", theirs["seal"])


def test_without_a_place_for_the_key_there_is_no_seal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file" / "state"))
    made = seals.sealed(FACTS)
    assert made["seal"] == ""
    assert not seals.is_own(made)


@pytest.mark.parametrize("how", ["open folder", "short", "link to a folder"])
def test_a_key_that_others_may_have_put_there_counts_for_nothing(
    how: str, state: Path, tmp_path: Path
) -> None:
    made = seals.sealed(FACTS)
    folder = state / "warplens"
    if how == "open folder":
        folder.chmod(0o777)
    elif how == "short":
        (folder / "key").write_bytes(b"short")
    else:
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    assert not seals.is_own(made)
