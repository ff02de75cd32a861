"""`python -m warplens.nvtx script.py` runs a program with every call annotated.

All else is as `python script.py` has it.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
import types
from collections.abc import Callable
from typing import Any

from warplens.nvtx import Profile

USAGE = "usage: python -m warplens.nvtx [--linenos | --no-linenos] [--annotate-cfuncs] (script.py | -m module) [argument ...]"
HELP = f"""{USAGE}

Runs a Python program and makes each of its calls an NVTX range of the domain 'nvtx.py'.

  --linenos          name ranges file.py:LINE(function); the default
  --no-linenos       name ranges after the function only
  --annotate-cfuncs  calls of C functions are ranges too
  -m module          run a module, as python -m does; what follows are its arguments
  -h, --help         show this text
"""


def main(arguments: list[str]) -> None:
    """Run what the arguments name.

    Exits as the program does, with 2 and the usage where they name nothing.
    """
    linenos, annotate_cfuncs = True, False
    rest = list(arguments)
    while rest and rest[0] in ("--linenos", "--no-linenos", "--annotate-cfuncs"):
        option = rest.pop(0)
        annotate_cfuncs |= option == "--annotate-cfuncs"
        linenos = linenos if option == "--annotate-cfuncs" else option == "--linenos"
    first = rest[0] if rest else ""
    if first in ("-h", "--help"):
        sys.stdout.write(HELP)
        return
    if first.startswith("-m"):
        rest = [first[2:], *rest[1:]] if first != "-m" else rest[1:]
    elif first == "--":
        del rest[0]
    elif first.startswith("-"):
        _refuse(f"there is no option {first}")
    if not rest:
        _refuse("-m needs the name of a module" if first == "-m" else "a script or -m module is missing")
    profile = Profile(linenos=linenos, annotate_cfuncs=annotate_cfuncs)
    run = _run_module if first.startswith("-m") else _run_script
    _as_python_shows_it(lambda: run(rest, profile))


def _refuse(reason: str) -> None:
    sys.stderr.write(f"{USAGE}\npython -m warplens.nvtx: {reason}\n")
    raise SystemExit(2)


def _new_main() -> dict[str, Any]:
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    return module.__dict__


def _first_path(folder: str) -> None:
    """Put `folder` where `python -m warplens.nvtx` has the current directory.

    With -P (safe path) there is no such place.
    """
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder


def _run_module(arguments: list[str], profile: Profile) -> None:
    import runpy

    run: Any = runpy.__dict__["_run_module_as_main"]  # what `python -m` itself calls
    sys.argv[:] = [sys.argv[0], *arguments[1:]]
    _new_main()
    with profile:
        run(arguments[0])


def _run_script(arguments: list[str], profile: Profile) -> None:
    import importlib.machinery
    import pkgutil
    import runpy

    script = arguments[0]
    sys.argv[:] = arguments
    path = os.path.join(os.getcwd(), script)  # as it stands, like python; an absolute path stays
    if pkgutil.get_importer(script) is not None:  # a folder or zip file with a __main__.py
        run: Any = runpy.__dict__["_run_module_as_main"]
        sys.path.insert(0, path) if getattr(sys.flags, "safe_path", False) else _first_path(path)
        _new_main()
        with profile:
            run("__main__", False)
        return
    try:
        with io.open_code(path) as file:
            code = pkgutil.read_code(file)
            if code is None:
                file.seek(0)
                code = compile(file.read(), path, "exec")
    except OSError as error:
        sys.stderr.write(
            f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n"
        )
        raise SystemExit(2) from None
    _first_path(os.path.dirname(os.path.realpath(path)))
    namespace = _new_main()
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    namespace.update(__file__=path, __loader__=loader, __cached__=None)
    with profile:
        exec(code, namespace)


def _as_python_shows_it(run: Callable[[], None]) -> None:
    """Call `run`; a traceback that comes of it shows the program's frames and none of this file."""
    try:
        run()
    except SystemExit:
        raise
    except BaseException:
        show = sys.excepthook

        def show_without_us(
            kind: type[BaseException], error: BaseException, traceback: types.TracebackType | None
        ) -> None:
            here = main.__code__.co_filename
            theirs, at = traceback, traceback
            while at is not None:
                if at.tb_frame.f_code.co_filename == here:
                    theirs = at.tb_next
                at = at.tb_next
            show(kind, error.with_traceback(theirs), theirs)

        sys.excepthook = show_without_us
        raise


if __name__ == "__main__":
    main(sys.argv[1:])
