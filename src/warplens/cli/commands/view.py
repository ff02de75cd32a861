"""Show reports as a timeline in the browser."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warplens.cli.options.report_path import ReportPath
from warplens.cli.printing.messages import tell
from warplens.cli.printing.words import short_path, size
from warplens.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from warplens.viewer.server.serving import Door

_SWITCH_S = 0.000_5
_MOST = 16


@click.command(
    epilog="""\b
Examples:
  warplens view run.warplens
  warplens view before.warplens after.warplens    side by side
  warplens view --follow run.warplens             while it is recorded
  warplens view --no-browser run.warplens         prints the ssh command
  warplens view --export page.html run.warplens   one file, to send
  warplens view --perfetto run.warplens           in the Perfetto UI
"""
)
@click.argument("reports", type=ReportPath(), nargs=-1, required=True, metavar="REPORT…")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="Port to listen on; default: a free one.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="Address to listen on; others need --allow-remote.",
)
@click.option(
    "--allow-remote",
    is_flag=True,
    help="Accept connections from other machines. Anyone with the address and its token can read the "
    "report. Not encrypted.",
)
@click.option(
    "--no-browser", is_flag=True, help="Do not start a browser; print the ssh command that forwards the port."
)
@click.option("--follow", is_flag=True, help="Show new events while the program is recorded.")
@click.option(
    "--export",
    "page",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the timeline of a small report with its data into one HTML file, which opens from disk.",
)
@click.option("-f", "--force-overwrite", is_flag=True, help="Replace a page that exists.")
@click.option("--perfetto", is_flag=True, help="Open the report in the Perfetto UI instead.")
@click.option(
    "--perfetto-ui",
    metavar="URL",
    help="Address of another Perfetto UI, e.g. http://localhost:10000; default: ui.perfetto.dev.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the address only.")
def command(
    reports: tuple[Path, ...],
    port: int,
    host: str,
    allow_remote: bool,
    no_browser: bool,
    follow: bool,
    page: Path | None,
    force_overwrite: bool,
    perfetto: bool,
    perfetto_ui: str | None,
    quiet: bool,
) -> None:
    """Show reports as a timeline in the browser. This command is the server: Ctrl-C ends it.

    The server listens to this machine only, and its address contains a token that every request
    needs. Two reports are shown side by side, with their differences. Files of other tools are
    imported first.
    """
    from warplens.viewer.server.serving import Server, listen

    if len(reports) > _MOST:
        raise UsageError(f"{len(reports)} reports are too many for one page; show at most {_MOST}.")
    handing_over = perfetto or perfetto_ui is not None
    if handing_over and (len(reports) > 1 or follow):
        raise UsageError("--perfetto opens a single, finished report: leave out the others and --follow.")
    if page is not None:
        if follow or handing_over:
            raise UsageError(
                "--export writes a page of the present reports; leave out --follow and --perfetto."
            )
        _export(reports, page, replace=force_overwrite, quiet=quiet)
        return
    browser = _browser(no_browser)
    with ExitStack() as stack:
        # First of all: reading a report takes longer than binding a port, and an early browser waits in its queue.
        door = listen(host, port, allow_remote=allow_remote)
        stack.callback(door.listening.close)
        _say(door, ", ".join(path.name for path in reports), browser=browser, quiet=quiet)
        from warplens.cli.finishing import progress_bar
        from warplens.cli.opening import opened
        from warplens.flows.viewing import RunFollower, handed_over, view_of
        from warplens.viewer import bundle

        if follow:
            for path in reports:
                _refreshed(path)
        shown = [stack.enter_context(opened(path, quiet=quiet)) for path in reports]

        if handing_over:
            with progress_bar() as progress:
                pages = stack.enter_context(handed_over(shown[0], perfetto_ui, progress))
        else:
            pages = dict(bundle.files())
        server = Server(door, view_of(shown), pages, ahead=not handing_over)
        if follow:
            follower = RunFollower(server.view, server.news, _refreshed)
            follower.start()
            stack.callback(follower.stop)
        if browser:
            _start_browser(door.once)
        # A viewport has to take the interpreter from the rules or a stat several times before it is answered: not 5 ms each time.
        sys.setswitchinterval(_SWITCH_S)
        server.run()
        if server.busy:  # nobody waits for that any more
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)


def _export(paths: Sequence[Path], page: Path, *, replace: bool, quiet: bool) -> None:
    """Write the page, and say what it cannot hold."""
    from warplens.cli.finishing import progress_bar
    from warplens.cli.opening import opened
    from warplens.flows import view_page

    if page.is_file() and not replace:
        raise UsageError(f"{short_path(page)} exists; -f replaces it.")
    with ExitStack() as stack:
        shown = [stack.enter_context(opened(path, quiet=quiet)) for path in paths]
        progress = stack.enter_context(progress_bar(quiet))
        try:
            view_page.write(shown, page, progress)
        except OSError as error:
            raise UsageError(f"cannot write {page}: {error.strerror or error}.") from error
    click.echo(f"{short_path(page)} ({size(page.stat().st_size)})")
    if not quiet:
        for loss in view_page.LOSES:
            click.echo(f"  not in it: {loss}", err=True)


def _say(door: Door, name: str, *, browser: bool, quiet: bool) -> None:
    click.echo(door.address)
    if not quiet:
        if not browser and not door.remote:
            tell(
                f"To see {name} on another machine, forward the port there, then open that address:\n  {door.forward}"
            )
        if door.remote:
            tell("Anyone with this address can read the report; the connection is not encrypted.")
        tell("Ctrl-C ends it.")
    sys.stdout.flush()


def _browser(unwanted: bool) -> bool:
    """Whether to start a browser: where there is a screen to show it on."""
    if unwanted or os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )


def _start_browser(address: str) -> None:
    """Open the page; in a thread, since some browsers return when they are closed."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _refreshed(path: Path) -> bool:
    """Have the session that records a report bring it up to date; False if none does."""
    from warplens.errors import WarplensError
    from warplens.recording.session.client import exchange
    from warplens.recording.session.directory import entries

    try:
        with entries() as found:
            own = [
                entry
                for entry in found
                if entry.alive and entry.note.report and Path(entry.note.report).resolve() == path.resolve()
            ]
            answers = [exchange(entry, {"do": "snapshot"}, None) for entry in own]
            return any(answer.get("ok") for answer in answers)
    except (WarplensError, OSError):
        return False
