"""Caches compiler output by input text and command: `compile_once.py g++ … -c x.cpp -o x.o`.

For builds that repeat each other: wheels for several interpreters, sanitizers, the next run of the tests. Objects are kept below
`build/objects` under what they were made of; where a tree lies plays no part. CMake takes this as CMAKE_CXX_COMPILER_LAUNCHER.
What does not compile one file into one object is handed to the compiler as it is.

Half of the time of a file of C++ goes into headers of the standard library, so those are compiled once for all files with the
same words (`tools/check_includes.py` sees to it that files name them all the same: other builds know nothing of this).
"""

from __future__ import annotations

import hashlib
import os
import sys

# Taking an object that is there needs no more; what compiling needs is imported there: that takes as long as all the rest.

KEPT = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build", "objects")
PLACES = ("-I", "-isystem", "-iquote")  # what was found there counts, not where they are
SYSTEM = "/usr/"  # hundreds of headers for each file: told apart by size and time
VERSIONS = 8  # objects of one file that are kept, for headers that change
DAY_S = 86400
# The headers that are compiled once, where more than a few files are compiled alike.
COMMON = [
    "algorithm",
    "array",
    "atomic",
    "cstdint",
    "cstdio",
    "cstdlib",
    "cstring",
    "memory",
    "mutex",
    "new",
    "string",
    "string_view",
    "unordered_map",
    "vector",
]
FEW = 3


class Compilation:
    """The words of a command, told apart: what becomes what, where headers are looked for, and the rest."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.out = self.listing = self.target = ""
        self.places: list[str] = []
        self.rest: list[str] = []
        sources = []
        left = iter(words[1:])
        for word in left:
            if (kind := next((kind for kind in PLACES if word.startswith(kind)), None)) is not None:
                place = word[len(kind) :] or next(left)
                self.places.append(place)
                self.rest.append(kind)
                # Headers of the system are kept under their whole path, so that the folder tells which of two of one name was read.
                if f"{os.path.abspath(place)}/".startswith(SYSTEM):
                    self.rest.append(os.path.abspath(place))
            elif word == "-o":
                self.out = next(left)
            elif word == "-MF":
                self.listing = next(left)
            elif word == "-MT":
                self.target = next(left)
            elif word.startswith("-std="):  # versions of CMake differ in where they say it
                self.rest.insert(0, word)
            elif word.endswith((".c", ".cpp")) and not word.startswith("-"):
                sources.append(word)
            elif word not in ("-c", "-MD"):
                self.rest.append(word)
        self.source = sources[0] if len(sources) == 1 else ""
        self.plain = (
            "-c" in words and bool(self.source and self.out) and not {"-x", "-E", "-include"} & set(self.rest)
        )

    def key(self) -> str:
        """What tells this compilation from others, headers aside."""
        compiler = _compiler(self.words[0])
        parts = [
            compiler,
            _state(compiler),
            os.path.basename(self.source),
            _contents(self.source),
            *self.rest,
        ]
        if any(word.startswith("-g") for word in self.rest):
            parts.append(os.path.abspath(self.source))  # debug information names it
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def spelled(self, path: str) -> str:
        """A header that was read, as it can be found in any tree: by the number of a place, or from the source's folder."""
        whole = os.path.abspath(path)
        if whole.startswith(SYSTEM):
            return whole
        for number, place in enumerate(self.places):
            if whole.startswith(os.path.abspath(place) + os.sep):
                return f"{number}:{os.path.relpath(whole, place)}"
        return f":{os.path.relpath(whole, os.path.dirname(self.source) or '.')}"

    def found(self, spelled: str) -> str:
        """The file that `spelled` means here."""
        number, colon, rest = spelled.partition(":")
        if not colon:
            return spelled
        return os.path.join(self.places[int(number)] if number else os.path.dirname(self.source), rest)

    def read(self, listing: str) -> list[str]:
        """The headers that a listing of the compiler names."""
        with open(listing, encoding="utf-8") as file:
            text = file.read().partition(": ")[2].replace("\\\n", " ").replace("\\ ", "\0")
        paths = [path.replace("\0", " ") for path in text.split()]
        return [path for path in paths if not path.startswith(KEPT) and path != self.source]

    def write(self, headers: list[str]) -> None:
        """The listing that the compiler would have written."""
        if self.listing:
            names = " ".join(path.replace(" ", "\\ ") for path in (self.source, *headers))
            with open(self.listing, "w", encoding="utf-8") as file:
                file.write(f"{self.target or self.out}: {names}\n")


def _compiler(word: str) -> str:
    places = (
        []
        if os.sep in word
        else [os.path.join(folder, word) for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)]
    )
    return os.path.realpath(
        next((path for path in places if os.access(path, os.X_OK) and os.path.isfile(path)), word)
    )


def _state(path: str) -> str:
    status = os.stat(path)
    return f"{status.st_size} {status.st_mtime_ns}"


def _contents(path: str) -> str:
    if path.startswith(SYSTEM):
        return _state(path)
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def _entries(folder: str) -> list[tuple[dict[str, str], str]]:
    """Objects that were made of one source: of which headers, and the file.

    A line each, with a header and its digest in turn behind it.
    """
    try:
        with open(os.path.join(folder, "made"), encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
    except (OSError, ValueError):
        return []
    return [(dict(zip(words[1::2], words[2::2], strict=True)), words[0]) for words in lines if len(words) % 2]


def _take(asked: Compilation, folder: str) -> bool:
    for headers, name in _entries(folder):
        try:
            here = {asked.found(spelled): digest for spelled, digest in headers.items()}
            if all(_contents(path) == digest for path, digest in here.items()):
                with open(os.path.join(folder, name), "rb") as kept, open(asked.out, "wb") as out:
                    out.write(kept.read())
                os.utime(folder)
                asked.write(list(here))
                return True
        except (OSError, IndexError, ValueError):
            continue
    return False


def _keep(asked: Compilation, folder: str, headers: list[str]) -> None:
    import shutil
    import tempfile

    if any("\t" in path for path in headers):
        return
    os.makedirs(folder, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder, suffix=".o", delete=False) as made:
        name = os.path.basename(made.name)
        with open(asked.out, "rb") as out:
            shutil.copyfileobj(out, made)
    entry = ({asked.spelled(path): _contents(path) for path in headers}, name)
    entries = [entry, *_entries(folder)]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=folder, delete=False) as file:
        for made_of, kept in entries[:VERSIONS]:
            file.write("\t".join([kept, *(word for pair in made_of.items() for word in pair)]) + "\n")
    os.replace(file.name, os.path.join(folder, "made"))
    for _, old in entries[VERSIONS:]:
        try:
            os.unlink(os.path.join(folder, old))
        except OSError:
            continue


def run(words: list[str]) -> int:
    """Run a command of a compiler; the exit status."""
    asked = Compilation(words)
    folder = os.path.join(KEPT, asked.key()) if asked.plain else ""
    if folder and _take(asked, folder):
        return 0
    import subprocess

    if not folder:
        return subprocess.run(words, check=False).returncode
    extra = []
    if not asked.listing:
        asked.listing = f"{asked.out}.d"
        extra = ["-MD", "-MF", asked.listing]
    done = subprocess.run([*words, *_common(asked), *extra], stderr=subprocess.PIPE, check=False)
    sys.stderr.buffer.write(done.stderr)
    if done.returncode == 0:
        headers = asked.read(asked.listing)
        asked.write(headers)
        if not done.stderr:
            _keep(asked, folder, headers)
            _forget()
    return done.returncode


def _common(asked: Compilation) -> list[str]:
    """Words that make the compiler begin with COMMON, which it has compiled.

    None where that does not pay, or is being done.
    """
    import subprocess

    if not asked.source.endswith(".cpp"):
        return []
    compiler = _compiler(asked.words[0])
    # Where headers of ours lie and what the command defines for them is nothing to the standard library.
    alike = [
        word
        for word in asked.rest
        if word not in PLACES and (word.startswith("-D_") or not word.startswith("-D"))
    ]
    # clang does not know this word, without which a listing lacks the headers that were compiled once: it compiles each file whole.
    alike.append("-fpch-deps")
    key = hashlib.sha256("\0".join([compiler, _state(compiler), *alike, *COMMON]).encode()).hexdigest()
    folder = os.path.join(KEPT, f"common-{key}")
    header = os.path.join(folder, "common.h")
    if os.path.exists(f"{header}.gch"):
        os.utime(folder)
        return ["-include", header, "-fpch-deps"]
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "asked"), "ab") as file:
        file.write(b".")
        file.flush()
        if file.tell() != FEW:  # one of those that run side by side does it, once
            return []
    with open(header, "w", encoding="utf-8") as file:
        file.writelines(f"#include <{name}>\n" for name in COMMON)
    made = f"{header}.made"
    words = [asked.words[0], *alike, "-x", "c++-header", header, "-o", made]
    if subprocess.run(words, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        return []
    os.rename(made, f"{header}.gch")
    return ["-include", header, "-fpch-deps"]


def _forget() -> None:
    """Once a day, remove what was not used for a week."""
    import shutil
    import time

    now, last = time.time(), os.path.join(KEPT, "last")
    try:
        if now - os.stat(last).st_mtime < DAY_S:
            return
    except FileNotFoundError:
        pass
    with open(last, "w", encoding="utf-8"), os.scandir(KEPT) as folders:
        for folder in folders:
            if now - folder.stat().st_mtime > 7 * DAY_S:
                shutil.rmtree(folder.path, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
