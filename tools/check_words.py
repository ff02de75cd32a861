"""Checks the prose of the tree for the patterns that docs/dev/style.md forbids.

It reads whole files, code included, because these patterns do not occur in code. A sentence may
continue on the next line of a comment or of a string.
"""

from __future__ import annotations

import bisect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = (
    "README.md",
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "docs",
    "src",
    "native",
    "web/src",
    "tools",
    "benchmarks",
)
SUFFIXES = {
    ".md",
    ".py",
    ".pyi",
    ".c",
    ".h",
    ".cpp",
    ".hpp",
    ".cuh",
    ".cu",
    ".ts",
    ".tsx",
    ".css",
    ".html",
    ".sh",
}
# Folders that a build makes.
BUILT = {"__pycache__", "_bundle", "_lib", "node_modules"}
# Allowed uses: these files may contain the patterns.
ALLOWED = {
    "docs/dev/style.md": "quotes the patterns",
    **{
        f"docs/performance/{page}.md": "is generated from the results of past runs"
        for page in ("asking", "files", "gpu", "kernels", "python-and-cpu", "recording", "report", "viewer")
    },
    "tools/check_words.py": "contains the patterns",
}

# A space of a pattern: also the end of a line with the marker of a comment or string after it.
GAP = r'(?:[ \t]+|[ \t]*["`]?[ \t]*\n[ \t]*(?:(?://+!?|\#+|\*+|[fr]?["`]|\|)[ \t]*)?)'
BE = r"(?:is|are|was|were|be|been|being|has been|have been)"
# Name: a word that each match contains, the pattern ("_" stands for a gap), and the advice.
PATTERNS = {
    "told": (
        "told",
        rf"\b{BE}_(?:not_|never_|only_|also_)?told\b",
        "name the component that sends or reports it",
    ),
    "said": (
        "said",
        rf"\b{BE}_(?:not_|never_|only_|also_)?said\b",
        "name the component that prints or reports it",
    ),
    "so many": ("many", r"\bso_many\b", "write the number or its name: `limit`, `--max N`"),
    "own": (
        "own",
        r"(?<!instead )\bof_(?:its|their|our|your|his|her|my)_own\b",
        "write: a separate …, its own …",
    ),
    "whoever": ("whoever", r"\bwhoever\b", "name the component or the person: the caller, a user who …"),
    "who": (
        "who",
        r"(?:[.:;(]_|^(?:[ \t]*(?://+!?|\#+|- ))?[ \t]*|\"\"\"|\b(?:for|by|and|of|to|that|what)_)who_(?:[a-z]+s|has|only|never)\b"
        r"(?![^.|]{0,160}\?)",
        "name the component or the person: a user who …",
    ),
    "what … for": (
        "what",
        r"\bwhat_(?:[\w'`]+_){0,4}(?:asks?|asked|waited|called|allow)_for\b(?![^.|]{0,40}\?)",
        "use a noun: the request, the cause, the lock that it waited for",
    ),
    "raises … where": (
        "where",
        r"\b(?:Raises_[A-Z]\w+|MissingData|UsageError|ReportError)_where\b",
        "write: raises … if",
    ),
    "1 things": (
        "1 ",
        r"(?<![\w.,:-])1 (?:kernels|files|ranks|threads|calls|ranges|events|samples|processes|rows|times)\b",
        "singular after 1",
    ),
}
COMPILED = {
    kind: (word, re.compile(pattern.replace("_", GAP), re.IGNORECASE | re.MULTILINE), advice)
    for kind, (word, pattern, advice) in PATTERNS.items()
}
BEFORE, AFTER = 80, 240  # characters around the word that a match may take


def matches(text: str, word: str, pattern: re.Pattern[str]) -> dict[int, str]:
    """Return the matches by their offset. Looks only around `word`: a hundred times faster."""
    lower = text.lower()
    if len(lower) != len(text):  # a rare letter becomes two: offsets would not fit
        lower = text
    result = {}
    at = lower.find(word)
    while at >= 0:
        for match in pattern.finditer(text, max(0, at - BEFORE), at + AFTER):
            result[match.start()] = " ".join(match[0].split())
        at = lower.find(word, at + len(word))
    return result


def complaints(name: str, text: str) -> list[str]:
    """Return one line for each forbidden pattern in the text of the file `name`."""
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    problems = []
    for kind, (word, pattern, advice) in COMPILED.items():
        for at, quote in matches(text, word, pattern).items():
            number = bisect.bisect_right(starts, at)
            problems.append((number, f'{name}:{number}: "{quote}" ({kind}): {advice}'))
    return [problem for _, problem in sorted(problems)]


def files() -> list[str]:
    """Return the text files below FOLDERS that no build makes.

    A source archive has no git, so the folders are walked.
    """
    names = []
    for top in FOLDERS:
        path = ROOT / top
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            name = file.relative_to(ROOT)
            if file.suffix in SUFFIXES and not BUILT.intersection(name.parts) and file.is_file():
                names.append(name.as_posix())
    return [name for name in names if name not in ALLOWED]


def main() -> int:
    """Print the complaints about all files; return 1 if there are any."""
    problems = [
        problem for name in files() for problem in complaints(name, (ROOT / name).read_text(encoding="utf-8"))
    ]
    for problem in problems:
        print(problem)
    if problems:
        print(f"{len(problems)} to rewrite: docs/dev/style.md explains the rules")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
