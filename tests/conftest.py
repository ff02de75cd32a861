"""What every test gets: optional pieces that may be required, and a check that no environment leaks."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.optional_dependencies import missing
from tests.support.programs.inherited_signals import reset_inherited_signals
from tests.support.thorough import examples

# The second one is set by commands that tests run in this process: they are meant to end with it.
_IGNORED = {"PYTEST_CURRENT_TEST", "ARROW_DEFAULT_MEMORY_POOL"}
# Workers of pytest-xdist are told how wide the terminal is; programs that write into pipes should not be.
os.environ.pop("COLUMNS", None)
reset_inherited_signals()
# How long an example takes says nothing about it where others use the machine; machines that only record lack hypothesis.
with contextlib.suppress(ImportError):
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "patient", deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("patient")


def _need(name: str) -> None:
    reason = missing(name)
    if reason is None:
        return
    required = {part.strip() for part in os.environ.get("WARPLENS_REQUIRE", "").split(",")}
    if name in required:
        pytest.fail(f"WARPLENS_REQUIRE names {name!r}, but {reason}", pytrace=False)
    pytest.skip(f"needs {name}: {reason}")


@pytest.fixture
def require() -> Callable[[str], None]:
    """Skip the test where the named optional piece is missing; fail it where WARPLENS_REQUIRE names the piece."""
    return _need


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hold `@pytest.mark.require("piece", …)` before any fixture is built."""
    for marker in item.iter_markers("require"):
        for name in marker.args:
            _need(name)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse a WARPLENS_REQUIRE that names something no test can ask for: a typing error would require nothing."""
    for name in filter(None, (part.strip() for part in os.environ.get("WARPLENS_REQUIRE", "").split(","))):
        try:
            missing(name)
        except KeyError:
            raise pytest.UsageError(
                f"WARPLENS_REQUIRE names {name!r}, which tests/support/optional_dependencies.py does not know"
            ) from None


@pytest.fixture
def tmpfs() -> Iterator[Callable[[str], Path]]:
    """Mount a tmpfs with the given options; it goes with the test, however that ends. For tests that require the piece.

    Not below `tmp_path`: another pytest run removes old folders there, and stops at what is mounted.
    """
    with contextlib.ExitStack() as undo:

        def mount(options: str) -> Path:
            folder = Path(tempfile.mkdtemp(prefix="warplens-tmpfs-"))
            undo.callback(folder.rmdir)
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], check=True)
            undo.callback(subprocess.check_call, ["umount", "--lazy", folder])
            return folder

        yield mount


@pytest.fixture
def loop_disk() -> Iterator[Callable[..., Path]]:
    """Make a file system in a file and mount it; all goes with the test. For tests that require the piece."""
    with contextlib.ExitStack() as undo:

        def mount(*maker: str, size: int = 128 << 20) -> Path:
            folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="warplens-loop-")))
            with (folder / "disk").open("wb") as file:
                file.truncate(size)
            subprocess.run([*maker, folder / "disk"], check=True, capture_output=True)
            point = folder / "mounted"
            point.mkdir()
            subprocess.run(["mount", "-o", "loop", folder / "disk", point], check=True)
            undo.callback(subprocess.check_call, ["umount", "--lazy", point])
            return point

        yield mount


@pytest.fixture(autouse=True)
def _environment_is_left_alone() -> Iterator[None]:
    before = {name: value for name, value in os.environ.items() if name not in _IGNORED}
    directory = Path.cwd()
    yield
    after = {name: value for name, value in os.environ.items() if name not in _IGNORED}
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    assert not changed, f"the test left the environment changed: {', '.join(changed)}"
    assert Path.cwd() == directory, "the test left the working directory changed"
