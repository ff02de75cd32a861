"""The program's environment gets what the agent needs, and nothing else."""

from __future__ import annotations

from pathlib import Path

from warplens.recording.launch.environment import child_environment

AGENT = Path("/lib/agent.so")
SPOOL = Path("/spool")


def test_variables_are_added() -> None:
    assert child_environment({"A": "1"}, agent=AGENT, spool=SPOOL) == {
        "A": "1",
        "NVTX_INJECTION64_PATH": "/lib/agent.so",
        "CUDA_INJECTION64_PATH": "/lib/agent.so",
        "INTEL_LIBITTNOTIFY64": "/lib/agent.so",
        "ONEDNN_ITT_TASK_LEVEL": "1",
        "WARPLENS_SPOOL": "/spool",
    }


def test_extra_variables_win() -> None:
    environment = child_environment({"A": "1"}, agent=AGENT, spool=SPOOL, extra=[("A", "2"), ("B", "x=y,z")])
    assert (environment["A"], environment["B"]) == ("2", "x=y,z")


def test_a_tool_that_is_replaced_is_named() -> None:
    environment = child_environment({"NVTX_INJECTION64_PATH": "/tool.so"}, agent=AGENT, spool=SPOOL)
    assert environment["WARPLENS_NVTX_CHAIN"] == "/tool.so"
    assert environment["NVTX_INJECTION64_PATH"] == "/lib/agent.so"


def test_a_launcher_in_a_launcher_does_not_chain_the_agent_to_itself() -> None:
    once = child_environment({"NVTX_INJECTION64_PATH": "/tool.so"}, agent=AGENT, spool=Path("/outer"))
    twice = child_environment(once, agent=AGENT, spool=SPOOL)
    assert twice["WARPLENS_NVTX_CHAIN"] == "/tool.so"
    assert twice["WARPLENS_SPOOL"] == "/spool"


def test_a_stale_chain_is_dropped() -> None:
    assert "WARPLENS_NVTX_CHAIN" not in child_environment(
        {"WARPLENS_NVTX_CHAIN": "/gone.so"}, agent=AGENT, spool=SPOOL
    )


def test_a_source_that_is_not_asked_for_leaves_the_other_tool_alone() -> None:
    tools = {"NVTX_INJECTION64_PATH": "/nvtx.so", "CUDA_INJECTION64_PATH": "/cuda.so"}
    assert child_environment(tools, agent=AGENT, spool=SPOOL, sources=()) == {
        **tools,
        "WARPLENS_SPOOL": "/spool",
    }
    assert child_environment(tools, agent=AGENT, spool=SPOOL, sources=("cuda",)) == {
        "NVTX_INJECTION64_PATH": "/nvtx.so",
        "CUDA_INJECTION64_PATH": "/lib/agent.so",
        "WARPLENS_CUDA_CHAIN": "/cuda.so",
        "WARPLENS_SPOOL": "/spool",
    }
