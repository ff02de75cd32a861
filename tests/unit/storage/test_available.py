"""How much memory is there: the least of what the machine, the control groups and the process itself leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warplens.storage import available

GIB = 1 << 30


def group(
    folder: Path,
    most: str,
    used: int,
    inactive: int = 0,
    names: tuple[str, str] = ("memory.max", "memory.current"),
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names[0]).write_text(f"{most}\n")
    (folder / names[1]).write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon 5\ninactive_file {inactive}\nactive_file 7\n")


def test_each_group_above_counts(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("0::/a/b\n")
    group(tmp_path / "root", "max", GIB)
    group(tmp_path / "root" / "a", str(4 * GIB), 3 * GIB, GIB)
    group(tmp_path / "root" / "a" / "b", "max", GIB)
    assert list(available._limits(tmp_path / "root", own)) == [(4 * GIB, 2 * GIB)]


def test_the_path_within_a_container_may_be_that_of_the_host(tmp_path: Path) -> None:
    own = tmp_path / "cgroup"
    own.write_text("12:memory:/docker/abc\n11:cpu:/docker/abc\n0::/docker/abc\n")
    group(
        tmp_path / "root" / "memory",
        str(2 * GIB),
        GIB,
        names=("memory.limit_in_bytes", "memory.usage_in_bytes"),
    )
    assert list(available._limits(tmp_path / "root", own)) == [(2 * GIB, GIB)]


def test_a_system_without_groups_has_no_limits(tmp_path: Path) -> None:
    (tmp_path / "cgroup").write_text("odd\n")
    assert list(available._limits(tmp_path, tmp_path / "cgroup")) == []
    assert list(available._limits(tmp_path, tmp_path / "none")) == []


def test_the_least_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "_limits", lambda: iter([(3 * GIB, 2 * GIB), (5 * GIB, 0)]))
    monkeypatch.setattr(available, "_machine", lambda: 16 * GIB)
    monkeypatch.setattr(available, "_free", lambda: 8 * GIB)
    monkeypatch.setattr(available, "_own", list)
    assert (available.total(), available.available()) == (3 * GIB, GIB)
    monkeypatch.setattr(available, "_own", lambda: [GIB // 2])
    monkeypatch.setattr(available, "_mapped", lambda: GIB // 8)
    assert (available.total(), available.available()) == (GIB // 2, 3 * GIB // 8)


@pytest.mark.parametrize(
    ("free", "wanted"), [(8 * GIB, 128 << 20), (100 << 20, 50 << 20), (1 << 20, 16 << 20)]
)
def test_the_budget_is_half_of_what_is_free_at_most(
    free: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(available, "available", lambda: free)
    assert available.budget() == wanted


def test_this_machine_has_memory() -> None:
    assert (
        0
        < available.available()
        <= available.total()
        <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    )
