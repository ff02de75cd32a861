"""Check what works on this machine, and print how to fix the rest.

Exit code 0 when programs can be recorded here, else 1.
"""

from __future__ import annotations

import json
import platform
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

import click

from warplens._version import __version__
from warplens.cli.checks import packages
from warplens.cli.checks.binding import binding_finding
from warplens.cli.checks.cpu import cpu_findings
from warplens.cli.checks.gpu import gpu_findings
from warplens.errors import CaptureError
from warplens.recording.agent.library import Agent, load_agent
from warplens.recording.spool.filesystems import filesystem_of, is_slow

_NAME = 13  # columns of the longest name


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: `state` is `ok`, `note` (works, but) or `fail` (nothing can be recorded)."""

    name: str
    state: str
    text: str


@click.command(
    epilog="""\b
Examples:
  warplens doctor
  warplens doctor -f json
"""
)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.pass_context
def command(ctx: click.Context, form: str) -> None:
    """Check what works on this machine, and print how to fix the rest."""
    checks = list(_checks())
    failed = any(check.state == "fail" for check in checks)
    if form == "json":
        click.echo(
            json.dumps(
                {"warplens": __version__, "ok": not failed, "checks": [asdict(check) for check in checks]},
                indent=2,
            )
        )
    else:
        colors = {"ok": "green", "note": "yellow", "fail": "red"}
        for check in checks:
            first, _, rest = check.text.partition("\n")
            click.echo(
                f"{click.style(check.state.ljust(5), fg=colors[check.state])} "
                f"{check.name.ljust(_NAME)} {first}"
            )
            for line in rest.splitlines():
                click.echo(" " * (_NAME + 7) + line)
        click.echo(
            "\nPrograms can be recorded here."
            if not failed
            else "\nNothing can be recorded here yet: see the lines marked fail."
        )
    ctx.exit(1 if failed else 0)


def _checks() -> Iterator[Check]:
    yield Check(
        "warplens",
        "ok",
        f"{__version__} on Python {platform.python_version()}, {platform.system()} {platform.machine()}",
    )
    yield Check("binding", *binding_finding())
    try:
        agent = load_agent()
    except CaptureError as error:
        yield Check("agent", "fail", str(error))
    else:
        yield Check("agent", "ok", str(agent.path))
        yield _clock(agent)
        yield _cost(agent)
        if not agent.knows_python():
            text = (
                f"the layout of {_python()} is not known: its programs are recorded without Python "
                "stacks and the GIL"
            )
            yield Check("python", "note", text)
        elif sysconfig.get_config_var("Py_GIL_DISABLED"):
            text = (
                f"{_python()}: `-t gil` records waits for locks of objects and pauses of all "
                "threads, above --gil-threshold only"
            )
            yield Check("python", "ok", text)
    yield _spool()
    if missing := packages.missing():
        text = f"{', '.join(missing)} missing: recordings must be finished on another machine"
        yield Check("reader", "note", f"{text}\n{packages.how_to_install()}")
    else:
        yield Check("reader", "ok", "reports can be finished and read here")
    for name, state, text in chain(cpu_findings(), gpu_findings()):
        yield Check(name, state, text)


def _python() -> str:
    free = sysconfig.get_config_var("Py_GIL_DISABLED")
    return f"{'free-threaded ' if free else ''}Python {platform.python_version()}"


def _clock(agent: Agent) -> Check:
    kind = agent.clock_sample().kind
    if kind == "tsc":
        return Check("clock", "ok", "the processor's time-stamp counter, which is invariant here")
    if kind == "cntvct":
        return Check("clock", "ok", "the processor's generic timer")
    return Check("clock", "note", f"{_why_not_counter()}: clock_gettime is used, which costs more per range")


def _why_not_counter() -> str:
    if platform.machine() not in ("x86_64", "aarch64"):
        return f"no known counter on {platform.machine()}"
    try:
        flags = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "the processor's flags cannot be read"
    if "constant_tsc" not in flags or "nonstop_tsc" not in flags:
        return "the time-stamp counter is not invariant here (no constant_tsc, nonstop_tsc)"
    return "the kernel does not trust the time-stamp counter (see current_clocksource)"


def _cost(agent: Agent) -> Check:
    with tempfile.TemporaryDirectory(prefix="warplens-doctor-") as directory:
        cost = agent.pair_cost(Path(directory))
    if cost is None:
        return Check(
            "nvtx",
            "fail",
            f"a trial recording in {tempfile.gettempdir()} failed; set TMPDIR to a writable local directory",
        )
    return Check("nvtx", "ok", f"recording a range costs {cost:.0f} ns")


def _spool() -> Check:
    here = filesystem_of(Path.cwd())
    if not is_slow(here):
        return Check("spool", "ok", f"beside the report, on {here}")
    there = filesystem_of(Path(tempfile.gettempdir()))
    slow = is_slow(there)
    text = f"under {tempfile.gettempdir()} ({there}), because {here} here is not a disk of this node"
    return (
        Check("spool", "note", text + "\nname a local directory with --spool-dir")
        if slow
        else Check("spool", "ok", text)
    )
