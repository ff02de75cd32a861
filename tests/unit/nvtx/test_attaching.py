"""When the tool comes: before the first event, after decorators were applied, or after a look that found nobody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.nvtx.conftest import Record, decode, run_python

pytestmark = [pytest.mark.require("native"), pytest.mark.require("gcc")]


def heard(log: Path) -> list[tuple[str, str | None]]:
    events = [decode(line) for line in log.read_text().splitlines()]
    return [
        (event["event"], event.get("message") or event.get("name"))
        for event in events
        if event["event"] != "string"
    ]


@pytest.mark.slow
def test_the_tool_may_be_announced_after_the_import(tool: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = f"""
        import os, warplens.nvtx as nvtx
        annotation = nvtx.annotate("x", domain="d", category="c")
        @annotation
        def function(): pass
        assert not nvtx.attached() and not nvtx.attached()
        os.environ["NVTX_INJECTION64_PATH"] = {str(tool)!r}
        assert nvtx.attached()
        with annotation: function()
    """
    run_python(code, NVTX_TOOL_LOG=str(log))
    assert heard(log) == [
        ("domain", None),
        ("category", "c"),
        ("push", "x"),
        ("push", "x"),
        ("pop", None),
        ("pop", None),
    ]


def test_attached_looks_again_when_another_tool_is_announced(tool: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = f"""
        import os, warplens.nvtx as nvtx
        domain = nvtx.get_domain("d")
        attributes = domain.get_event_attributes("attributes", category="early")
        annotation = nvtx.annotate("x")
        @nvtx.annotate()
        def function(): pass
        with annotation: function()
        assert domain.start_range(attributes) == 0
        assert not nvtx.attached()
        os.environ["NVTX_INJECTION64_PATH"] = {str(tool)!r}
        function()
        assert nvtx.attached()
        with annotation: function()
        domain.mark(attributes)
    """
    run_python(code, NVTX_TOOL_LOG=str(log))
    assert heard(log) == [
        ("push", "x"),
        ("push", "function"),
        ("pop", None),
        ("pop", None),
        ("domain", None),
        ("category", "early"),
        ("mark", "attributes"),
    ]


def test_a_failed_announcement_can_be_mended(tool: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = f"""
        import os, warplens.nvtx as nvtx
        from warplens.nvtx._binding import look_again
        nvtx.mark("lost")
        assert not nvtx.attached() and not look_again()
        os.environ["NVTX_INJECTION64_PATH"] = {str(tool)!r}
        assert look_again() and look_again() and nvtx.attached()
        nvtx.mark("kept")
    """
    run_python(code, NVTX_TOOL_LOG=str(log), NVTX_INJECTION64_PATH="/nowhere/libmissing.so")
    assert heard(log) == [("mark", "kept")]


def test_asking_is_free_of_events(record: Record) -> None:
    assert record("import warplens.nvtx as nvtx\nassert nvtx.attached() and nvtx.enabled()") == []
