"""What importing loads: the traced process stays light, the facade lazy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import warplens

SRC = Path(__file__).resolve().parents[2] / "src"
_LOADED = """
import json, sys
sys.path.insert(0, {src!r})
{statement}
print(json.dumps(sorted(sys.modules)))
"""


def _loaded(statement: str) -> set[str]:
    """Run `statement` in a fresh interpreter without site-packages and list the modules that were loaded."""
    program = _LOADED.format(src=str(SRC), statement=statement)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import warplens.nvtx",
        "import warplens.nvtx\nwith warplens.nvtx.annotate('step', color='red', domain='d', category='c', payload=1):\n    pass",
        "import warplens.model.tables, warplens.errors, warplens.catalog",
        "import pkgutil, warplens.recording\n"
        "for module in pkgutil.walk_packages(warplens.recording.__path__, 'warplens.recording.'):\n    __import__(module.name)",
        "import pkgutil, warplens.intrakernel, warplens.intrakernel.dsl\n"
        "for module in pkgutil.iter_modules(warplens.intrakernel.__path__, 'warplens.intrakernel.'):\n    __import__(module.name)\n"
        "buffer = warplens.intrakernel.allocate(4, device='cpu')\nwith buffer.launch('k'):\n    buffer.read()",
        "import warplens",
    ],
    ids=["nvtx", "annotate", "model", "recording", "intrakernel", "facade"],
)
def test_only_the_standard_library_is_needed(statement: str) -> None:
    roots = {name.partition(".")[0] for name in _loaded(statement)}
    assert roots - {"warplens", "__main__"} <= set(sys.stdlib_module_names)


def test_annotating_loads_nothing_slow() -> None:
    slow = {
        "ctypes",
        "asyncio",
        "inspect",
        "dataclasses",
        "logging",
        "subprocess",
        "socket",
        "pathlib",
        "importlib.metadata",
    }
    base = _loaded("pass")
    assert not (_loaded("import warplens.nvtx") - base) & slow


def test_the_facade_is_lazy() -> None:
    assert not {name for name in _loaded("import warplens") if name.startswith("warplens.")} - {
        "warplens._version"
    }


def test_the_facade_lists_what_it_has() -> None:
    assert list(warplens.__all__) == sorted(warplens.__all__)
    assert dir(warplens) == warplens.__all__
    for name in warplens.__all__:
        assert getattr(warplens, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        getattr(warplens, "no_such_name")  # noqa: B009  (mypy knows that it is not there)
