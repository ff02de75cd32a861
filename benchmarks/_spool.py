"""Prepares a spool directory as the launcher does, so that a program can run under the agent alone."""

from __future__ import annotations

import sys
import time
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(SOURCE))

from warplens.recording.agent.library import load_agent  # noqa: E402


def recording(folder: Path) -> dict[str, str]:
    """Create `folder` with a control page; return the variables that make a program record into it."""
    folder.mkdir(parents=True)
    agent = load_agent()
    early = agent.clock_sample()
    time.sleep(0.05)
    agent.create_control(folder / "control", early)
    return {"NVTX_INJECTION64_PATH": str(agent.path), "WARPLENS_SPOOL": str(folder)}
