"""Prints the state of a running session: recording or not, its windows, its report."""

from __future__ import annotations

import json
from typing import Any

import click

from warplens.cli.options.session_option import session_option
from warplens.cli.printing.session_words import phase, report_path
from warplens.cli.printing.windows import why
from warplens.cli.printing.words import duration

_MANY = 10


@click.command(
    epilog="""\b
Examples:
  warplens status
  warplens status --session serve -f json
"""
)
@session_option
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
def command(session: str | None, form: str) -> None:
    """Show the state of a running session: recording or not, its windows, its report."""
    from warplens.recording.session.client import ask

    state = ask(session, {"do": "status"})
    if form == "json":
        state.pop("ok", None)
        click.echo(json.dumps(state, indent=2))
        return
    lines = _lines(state)
    width = max(10, *(len(label) + 1 for label, _ in lines))
    for label, text in lines:
        click.echo(click.style(label.ljust(width), bold=True) + text)


def _lines(state: dict[str, Any]) -> list[tuple[str, str]]:
    lines = [
        ("Session", str(state["session"])),
        ("State", phase(state)),
        ("Program", f"process {state['program']}, started by process {state['pid']}"),
    ]
    if state.get("keep_last"):
        lines.append(
            (
                "Recorder",
                f"keeps the last {state['keep_last']:g} s; save them with: warplens stop --keep {state['keep_last']:g}",
            )
        )
    windows = state["windows"]
    first = int(state["window_count"]) - len(windows)
    shown = list(enumerate(windows, first + 1))[-_MANY:]
    if shown and shown[0][0] > 1:
        lines.append(("", f"… {shown[0][0] - 1} earlier windows"))
    for number, window in shown:
        index = number - first - 1
        how = why(window, windows[index - 1] if index else {})
        length = duration(window["close_ns"] - window["open_ns"]) if window["close_ns"] else "open"
        lines.append((f"Window {number}", f"{length} ({how})"))
    lines.append(("Report", report_path(state)))
    return lines
