"""tools/wheels.py and what tries a wheel: symbols that are too new, interpreters without a binding, a network that is taken away."""

from __future__ import annotations

import importlib
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
Tool = Callable[[str], ModuleType]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Tool:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module


@pytest.mark.parametrize(
    ("allowed", "machine", "fits"),
    [
        ("manylinux_2_28_x86_64", "x86_64", True),
        ("manylinux_2_17_aarch64", "aarch64", True),
        ("manylinux_2_29_x86_64", "x86_64", False),
        ("manylinux_2_34_aarch64", "aarch64", False),
        ("manylinux_2_17_x86_64", "aarch64", False),
        ("linux_x86_64", "x86_64", False),
    ],
)
def test_symbols_newer_than_the_tag_are_refused(tool: Tool, allowed: str, machine: str, fits: bool) -> None:
    assert tool("wheels").symbols_fit(allowed, machine) is fits


def test_a_wheel_has_a_binding_for_the_interpreter_whose_suffix_is_there(tool: Tool, tmp_path: Path) -> None:
    trial = tool("wheel_trial")
    for name, has in (
        (f"_binding{sysconfig.get_config_var('EXT_SUFFIX')}", True),
        ("_binding.cpython-39-x86_64-linux-gnu.so", False),
    ):
        wheel = tmp_path / f"{has}.whl"
        with zipfile.ZipFile(wheel, "w") as packed:
            packed.writestr(f"warplens/nvtx/{name}", b"")
        assert trial.has_binding(wheel, Path(sys.executable)) is has


@pytest.mark.slow
def test_a_trial_that_fails_names_wheel_and_interpreter(tool: Tool, tmp_path: Path) -> None:
    """An empty wheel: installing it is what fails."""
    wheel = tmp_path / "warplens-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w"):
        pass
    words = [
        sys.executable,
        str(ROOT / "tools" / "wheel_trial.py"),
        str(wheel),
        sys.executable,
        str(tmp_path),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"{wheel.name} does not work with {sys.executable}: " in done.stderr
    assert "pip" in done.stderr


def test_a_trial_has_no_network_but_loopback(tool: Tool) -> None:
    alone = tool("wheel_trial").without_network()
    if not alone:
        pytest.skip("unshare is refused here")
    program = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import socket, wheel_trial; wheel_trial.loopback();"
        "server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname());"
        "print([name for _, name in socket.if_nameindex()])"
    )
    done = subprocess.run([*alone, sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['lo']\n"
