"""Starts one of our modules in another process with our import path.

It never imports from the current folder.
"""

from __future__ import annotations

import subprocess
import sys

_BEGIN = "import sys; sys.path[:] = sys.argv[2:]; from importlib import import_module; import_module(sys.argv[1]).main()"


def start(module: str) -> subprocess.Popen[bytes]:
    """Run `main()` of a module in a process that signals of the terminal do not reach.

    Pipes are its input and output.
    """
    words = [sys.executable, "-c", _BEGIN, module, *filter(None, sys.path)]
    return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
