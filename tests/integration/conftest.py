"""Programs in C for the tests to run: built once a session."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.native.targets import source
from tests.support.page.browsing import started

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SOURCES = Path(__file__).resolve().parents[1] / "targets"
Target = Callable[..., Path]


def nvtx_headers() -> Path:
    """The folder with NVTX's headers, as PyPI's nvidia-nvtx brings them."""
    files = importlib.metadata.files("nvidia-nvtx") or []
    return next(Path(str(file.locate())).parent.parent for file in files if file.name == "nvToolsExt.h")


def in_site_packages(pattern: str) -> Path:
    """The first file that matches `pattern` below one of the folders that Python searches; FileNotFoundError if there is none."""
    for folder in sys.path:
        for path in Path(folder or ".").glob(pattern):
            return path
    raise FileNotFoundError(pattern)


# What takes longest first, so that no worker is left alone with it at the end; what uses a browser is together.
FIRST = (
    "sanitizers",
    "packaging",
    "other_pythons",
    "guides",
    "view",
    "sanitized",
    "native_units",
    "profile",
    "--light",
    "foreign",
    "cuda_end",
    "record",
    "perf",
    "sessions",
    "finish",
    "torture",
    "bad_conditions",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files in the order in which workers are to take them (run_tests.py)."""

    def place(item: pytest.Item) -> int:
        return next(
            (number for number, name in enumerate(FIRST) if item.path.name.startswith(f"test_{name}")),
            len(FIRST),
        )

    items.sort(key=place)


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    """Build `tests/targets/*/NAME.c` (with more words for the compiler) and return the program."""
    folder = tmp_path_factory.mktemp("targets")
    built: dict[tuple[str, ...], Path] = {}

    def build(name: str, *words: str | Path, headers: Path | None = None, compiler: str = "gcc") -> Path:
        key = (name, str(headers), compiler, *map(str, words))
        if key not in built:
            program = folder / str(len(built)) / name
            program.parent.mkdir()
            include = ["-isystem", str(headers or nvtx_headers())]
            command = [
                compiler,
                "-O1",
                "-Wall",
                "-Werror",
                *include,
                str(source(f"{name}.c")),
                "-o",
                str(program),
            ]
            subprocess.run([*command, *map(str, words), "-pthread", "-ldl"], check=True)
            built[key] = program
        return built[key]

    return build


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests with a browser in Chromium, those marked `every_browser` in Firefox too.

    Those with `every_browser("always")` always, the others only in `make test-all`.
    """
    if "browser" in metafunc.fixturenames:
        every = metafunc.definition.get_closest_marker("every_browser")
        rarely = () if every and every.args == ("always",) else (pytest.mark.exhaustive,)
        names = [
            pytest.param("chromium", marks=pytest.mark.require("browser")),
            pytest.param("firefox", marks=(pytest.mark.require("firefox"), *rarely)),
        ]
        metafunc.parametrize("browser", names if every else names[:1], indirect=True, scope="module")


@pytest.fixture(scope="module")
def browser(request: pytest.FixtureRequest) -> Iterator[Browser]:
    """A browser without a window. Not for longer than a file: its driver runs an event loop."""
    with started(request.param) as running:
        yield running
