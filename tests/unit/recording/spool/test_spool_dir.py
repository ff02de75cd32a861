"""The spool goes where this node's own memory can be mapped to a file, and says so in words where it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.errors import CaptureError
from warplens.recording.spool import directory as spool_dir
from warplens.recording.spool.directory import choose_spool


def test_beside_the_report_where_that_is_local(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    chosen = choose_spool(report, "h-1-2")
    assert chosen.path == report / "spool" / "h-1-2"
    assert chosen.beside
    assert chosen.warning is None
    assert chosen.path.stat().st_mode & 0o777 == 0o700
    assert not list(chosen.path.iterdir())


def test_a_report_on_a_network_disk_spools_under_tmpdir(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    monkeypatch.setattr(
        spool_dir,
        "_candidates",
        lambda report, environment: [(tmp_path / "a", True), (tmp_path / "b", False)],
    )
    chosen = choose_spool(tmp_path / "r.warplens", "h-1-2")
    assert chosen.path == tmp_path / "b" / "warplens-h-1-2"
    assert chosen.warning is not None
    assert "nfs4" in chosen.warning


def test_a_filesystem_that_nobody_knows_is_taken_without_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_dir, "filesystem_of", lambda path: "unknown")
    chosen = choose_spool(tmp_path / "r.warplens", "h-1-2")
    assert (chosen.beside, chosen.warning) == (True, None)


def test_a_nearly_full_disk_makes_way_for_one_with_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, roomy = tmp_path / "full", tmp_path / "roomy"
    monkeypatch.setattr(
        spool_dir,
        "_warning",
        lambda path, filesystem: "only 1.0 MiB are free" if full in path.parents else None,
    )
    monkeypatch.setattr(spool_dir, "_candidates", lambda report, environment: [(full, True), (roomy, False)])
    assert choose_spool(tmp_path / "r.warplens", "h-1-2").path == roomy / "warplens-h-1-2"
    assert not list(full.iterdir())


def test_an_explicit_directory_is_taken(tmp_path: Path) -> None:
    assert (
        choose_spool(tmp_path / "r.warplens", "h-1-2", explicit=tmp_path / "mine").path
        == tmp_path / "mine" / "warplens-h-1-2"
    )


@pytest.mark.parametrize("filesystem", ["nfs", "nfs4"])
def test_nfs_is_refused_in_words(filesystem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool_dir, "filesystem_of", lambda path: filesystem)
    with pytest.raises(CaptureError) as caught:
        choose_spool(tmp_path / "r.warplens", "h-1-2", explicit=tmp_path / "mine")
    what, then = str(caught.value).splitlines()
    assert (
        what
        == f"--spool-dir {tmp_path / 'mine'} is on {filesystem}: if its server did not answer, the program would wait for it."
    )
    assert then.startswith("Name a directory on a disk of this node, e.g. /tmp")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("filesystem", ["zfs", "tmpfs", "overlay"])
def test_a_directory_on_a_disk_of_this_node_is_taken_without_a_word(
    filesystem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool_dir, "filesystem_of", lambda path: filesystem)
    chosen = choose_spool(tmp_path / "r.warplens", "h-1-2", explicit=tmp_path / "mine")
    assert (chosen.filesystem, chosen.warning) == (filesystem, None)


def test_an_explicit_file_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError, match=r"--spool-dir .*not a directory|file of that name"):
        choose_spool(tmp_path / "r.warplens", "h-1-2", explicit=tmp_path / "file")


@pytest.mark.parametrize("target", ["/proc", "/sys"])
def test_an_unwritable_directory_is_refused_in_words(target: str, tmp_path: Path) -> None:
    if not Path(target).is_mount():
        pytest.skip("it is a plain directory here, as in a chroot")
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
