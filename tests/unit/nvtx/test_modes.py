"""NVTX_DISABLE, a missing binding, and what the import may load."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.nvtx.conftest import Record, run_python

PROGRAM = """
    import warplens.nvtx as nvtx
    assert nvtx.enabled() is {enabled} and nvtx.attached() is {attached}
    def function(): return 5
    decorated = nvtx.annotate("x", color="red")(function)
    assert (decorated is function) is {same} and decorated() == 5
    with nvtx.annotate("x"): nvtx.mark("y")
    nvtx.push_range("z"); nvtx.pop_range()
    domain = nvtx.get_domain("d")
    domain.push_range(domain.get_event_attributes("m")); domain.pop_range()
    import pickle
    assert pickle.loads(pickle.dumps(nvtx.annotate("x", payload=2))).__reduce__()[1] == ("x", None, None, None, 2)
    assert nvtx.annotate.__module__ == "warplens.nvtx"
"""


@pytest.mark.require("native")
def test_without_a_tool_it_is_enabled() -> None:
    run_python(PROGRAM.format(enabled=True, attached=False, same=False))


@pytest.mark.require("native", "gcc")
@pytest.mark.parametrize("value", ["1", "0", "yes"])
def test_nvtx_disable_silences_everything_with_a_tool(record: Record, value: str) -> None:
    assert record(PROGRAM.format(enabled=False, attached=False, same=True), NVTX_DISABLE=value) == []


@pytest.mark.require("native", "gcc")
def test_disabled_nvtx_is_the_muted_binding(record: Record) -> None:
    code = """
        import os, warplens.nvtx as nvtx
        from warplens.nvtx import _binding
        assert nvtx.annotate is _binding.annotate and not _binding.look_again()
        with nvtx.annotate("x", payload={"a": 1}) as r: r.payload = 2
        counter = nvtx.get_domain("d").get_counter("c", int); counter.sample(1); counter.batch_submit([1], [2])
        with nvtx.Lock("l"), nvtx.start_end_range("r"), nvtx.get_domain("d").create_resource("r", 1): pass
        nvtx.name_thread("t"); nvtx.name_category(1, "c"); nvtx.name_cuda_device(0, "d")
        with nvtx.Profile(): pass
        class C:
            @staticmethod
            @nvtx.annotate()
            def static(): return 1
        assert C.static() == 1 and type(C.__dict__["static"].__func__).__name__ == "function"
    """
    assert record(code, NVTX_DISABLE="1") == []


@pytest.mark.require("native", "gcc")
def test_an_empty_nvtx_disable_does_nothing(record: Record) -> None:
    events = record(PROGRAM.format(enabled=True, attached=True, same=False), "push", NVTX_DISABLE="")
    assert [event["message"] for event in events] == ["x", "x", "z", "m"]


def test_without_the_binding_it_records_nothing() -> None:
    missing = 'import sys; sys.modules["warplens.nvtx._binding"] = None'
    run_python(f"\n    {missing}" + PROGRAM.format(enabled=False, attached=False, same=True))


@pytest.mark.parametrize("disabled", ["", "1"])
def test_the_import_loads_nothing_heavy(disabled: str) -> None:
    code = """
        import sys
        before = set(sys.modules)
        import warplens.nvtx
        outside = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(" ".join(sorted(outside - set(sys.stdlib_module_names) - {"warplens"})))
        print(" ".join(sorted(outside & {"inspect", "asyncio", "dataclasses", "pathlib", "subprocess", "logging", "ctypes"})))
        print(" ".join(sorted(name for name in sys.modules if name.startswith("warplens."))))
    """
    foreign, heavy, own = run_python(code, NVTX_DISABLE=disabled).split("\n")[:3]
    assert foreign == ""
    assert heavy == ""
    assert all(name.startswith(("warplens.nvtx", "warplens._version")) for name in own.split()), own


def test_scripts_written_for_pypi_nvtx_find_every_name(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import warplens.nvtx as nvtx\n"
        "from functools import partial\n"
        "mine = partial(nvtx.annotate, domain='mine')\n"
        "@mine(message='work', color='green')\n"
        "def work(n): return sum(range(n))\n"
        "assert work(3) == 3\n"
        "assert nvtx.colors.color_to_hex('green') == 0x008000\n"
    )
    run_python(script.read_text())
