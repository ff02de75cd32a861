"""The spool goes where this node's own memory can be mapped to a file, and says so in words where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.capture import spool_dir
from warplens.capture.spool_dir import choose_spool, filesystem_of
from warplens.errors import CaptureError

MOUNTS = """\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:30 / /home rw - nfs4 server:/home rw
24 22 0:31 / /home/me/fast\\040disk rw,noatime shared:1 - xfs /dev/sdb rw
25 22 0:32 / /over rw - overlay overlay rw
26 22 0:33 / /over rw - tmpfs tmpfs rw
broken line
"""


@pytest.fixture
def mounts(tmp_path: Path) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS)
    return path


@pytest.mark.parametrize(
    ("path", "filesystem"),
    [
        ("/nowhere/at/all", "ext4"),
        ("/homes", "ext4"),
        ("/home/me/run", "nfs4"),
        ("/home/me/fast disk/run", "xfs"),
        ("/over/x", "tmpfs"),
    ],
)
def test_the_innermost_mount_counts(mounts: Path, path: str, filesystem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # none of these exists here: look at them as they are written
    monkeypatch.setattr(Path, "exists", lambda self: True)
    root = Path("/").stat()
    monkeypatch.setattr(Path, "stat", lambda self: root)
    assert filesystem_of(Path(path), mounts) == filesystem


def test_an_unreadable_mount_table_is_unknown(tmp_path: Path) -> None:
    assert filesystem_of(tmp_path, tmp_path / "missing") == "unknown"


def test_beside_the_report_where_that_is_local(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    chosen = choose_spool(report, "h-1-2")
    assert chosen.path == report / "spool" / "h-1-2"
    assert chosen.beside
    assert chosen.warning is None
    assert chosen.path.stat().st_mode & 0o777 == 0o700
    assert not list(chosen.path.iterdir())


def test_a_report_on_a_network_disk_spools_under_tmpdir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, local = tmp_path / "r.warplens", tmp_path / "tmp"
    report.mkdir()
    local.mkdir()
    monkeypatch.setattr(spool_dir, "filesystem_of", lambda path: "nfs4" if report in path.parents else "ext4")
    chosen = choose_spool(report, "h-1-2", environment={"TMPDIR": str(local)})
    assert chosen.path == local / "warplens-h-1-2"
    assert not chosen.beside
    assert not (report / "spool").exists()


def test_no_local_disk_at_all_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_dir, "filesystem_of", lambda path: "nfs4")
    monkeypatch.setattr(spool_dir, "_candidates", lambda report, environment: [(tmp_path / "a", True), (tmp_path / "b", False)])
    chosen = choose_spool(tmp_path / "r.warplens", "h-1-2")
    assert chosen.path == tmp_path / "b" / "warplens-h-1-2"
    assert chosen.warning is not None
    assert "nfs4" in chosen.warning


def test_a_nearly_full_disk_makes_way_for_one_with_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full, roomy = tmp_path / "full", tmp_path / "roomy"
    monkeypatch.setattr(spool_dir, "_warning", lambda path, filesystem: "only 1.0 MiB are free" if full in path.parents else None)
    monkeypatch.setattr(spool_dir, "_candidates", lambda report, environment: [(full, True), (roomy, False)])
    assert choose_spool(tmp_path / "r.warplens", "h-1-2").path == roomy / "warplens-h-1-2"
    assert not list(full.iterdir())


def test_an_explicit_directory_is_taken(tmp_path: Path) -> None:
    assert choose_spool(tmp_path / "r.warplens", "h-1-2", explicit=tmp_path / "mine").path == tmp_path / "mine" / "warplens-h-1-2"


def test_an_explicit_file_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError, match=r"--spool-dir .*not a directory|file of that name"):
        choose_spool(tmp_path / "r.warplens", "h-1-2", explicit=tmp_path / "file")


@pytest.mark.parametrize("target", ["/proc", "/sys"])
def test_an_unwritable_directory_is_refused_in_words(target: str, tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="Cannot write to --spool-dir"):
        choose_spool(tmp_path / "r.warplens", "h-1-2", explicit=Path(target))


def test_nowhere_to_write_lists_every_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    places = [(tmp_path / "file", True), (tmp_path / "file" / "under", False)]
    monkeypatch.setattr(spool_dir, "_candidates", lambda report, environment: places)
    with pytest.raises(CaptureError) as caught:
        choose_spool(tmp_path / "r.warplens", "h-1-2")
    assert all(str(place) in str(caught.value) for place, _ in places)
    assert "--spool-dir" in str(caught.value)
