"""Draws the terminal output of a command as an SVG: `terminal_picture.py OUT.svg COLUMNS COMMAND…`.

The command really runs, on a pseudo-terminal of that many columns; its text and colours are taken as they come.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

FONT = "monospace"  # the reader's own: none is fetched


def run(columns: int, command: list[str]) -> str:
    """Run `command` on a terminal of `columns` columns and return what it printed.

    Its failure ends this program.
    """
    pid, master = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environment = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        os.execvpe(command[0], command, environment | {"TERM": "xterm-256color"})
    pieces = []
    while True:
        try:
            pieces.append(os.read(master, 65536))
        except OSError:  # the last process has closed the terminal
            break
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    text = b"".join(pieces).decode("utf-8", errors="replace").replace("\r\n", "\n")
    if status:
        sys.exit(f"{text}\n{' '.join(command)} ended with {status}")
    # What a progress bar drew and wiped out again is not there any more.
    return "\n".join(
        line.rpartition("\r")[2] for line in re.sub(r"\x1b\[[0-9;?]*[A-HJ-lsuK]", "", text).split("\n")
    )


def picture(text: str, columns: int, title: str) -> str:
    """Return the SVG of `text`, without the web fonts that rich would fetch."""
    with open(os.devnull, "w") as nowhere:
        console = Console(
            record=True, width=columns, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        console.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
    svg = console.export_svg(title=title, theme=MONOKAI)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;]*;", f"font-family: {FONT};", svg)
    return re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE).rstrip() + "\n"


def main() -> None:
    """Read the command line, run and draw."""
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    out, columns, command = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    text = run(columns, command)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(picture(text, columns, "make demo"), encoding="utf-8")
    print(f"{out}: {out.stat().st_size // 1024} KiB, {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
