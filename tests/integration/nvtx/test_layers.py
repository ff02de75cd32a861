"""The import contracts bite: each planted violation breaks the contract that forbids it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.thorough import alike

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.require("lint-imports")


PLANTED = [
    ("report/report.py", "import warplens.stats.base", "Data flows one way"),
    ("spool/__init__.py", "import warplens.report.store", "Data flows one way"),
    ("catalog.py", "import warplens.model.tables", "Data flows one way"),
    ("new_part/__init__.py", "", "Data flows one way"),
    ("report/store.py", "import warplens.recording.facts", "The traced process and the reader"),
    ("nvtx/colors.py", "import numpy", "Nothing heavy"),
    ("recording/launch/launcher.py", "def f() -> None:\n    import rich", "Nothing heavy"),
    ("stats/base.py", "import torch", "without a GPU stack"),
    ("report/store.py", "import warplens", "Nobody inside imports the facade"),
    ("stats/tables/nvtx_sum.py", "import warplens.stats.tables.nvtx_pushpop_sum", "Units of a family"),
    ("stats/base.py", "import warplens.stats.tables.nvtx_sum", "Units are found by the catalog"),
    ("cli/main.py", "import warplens.cli.commands.stats", "Units are found by the catalog"),
    ("stats/base.py", "import duckdb", "Only query speaks duckdb"),
    ("storage/manifest.py", "import warplens.report.store", "No cycles"),
]
# One import against each rule; of those each fourth one, and a part that has no place in it, are tried each time.
EACH = {contract: line for line in reversed(PLANTED) for contract in line[2:]}


@pytest.mark.parametrize(
    ("module", "line", "contract"),
    alike(PLANTED, *list(EACH.values())[::4], ("new_part/__init__.py", "", "Data flows one way")),
)
def test_a_planted_import_is_refused(module: str, line: str, contract: str, tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / "src" / "warplens", tmp_path / "warplens", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    path = tmp_path / "warplens" / module
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{path.read_text() if path.is_file() else ''}\n{line}\n")
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from importlinter.cli import "
        f"lint_imports_command; lint_imports_command()"
    )
    command = [sys.executable, "-c", program, "--no-cache", "--config", str(ROOT / "pyproject.toml")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode != 0, done.stdout
    broken = [text for text in done.stdout.splitlines() if " BROKEN" in text]
    assert any(contract in text for text in broken), done.stdout
