"""Builds the documentation site into site/.

It copies the pages, makes the reference pages, records the live examples and runs Zensical strictly.
usage: docs_site.py [--install] [--pictures]. Zensical is installed into build/site/env.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
WORK = ROOT / "build" / "site"
PAGES = WORK / "pages"
REQUIREMENT = "zensical>=0.0.70,<1"
# Pages outside of docs/, and those that have another name on the site.
NAMES = {
    ROOT / "README.md": "index.md",
    DOCS / "README.md": "contents.md",
    **{ROOT / name: name for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")},
}
LIVE: dict[str, tuple[str, list[str], list[str]]] = {
    # title, program (files below examples/), options of `profile`
    "training": ("A training program that waits for its data", ["train.py"], []),
    "cpu": (
        "A program whose threads wait for the GIL",
        ["cpu_mistakes/gil_hog.py"],
        ["--sample=process-tree", "-t", "nvtx,gil,gc,osrt"],
    ),
    "inside": ("Regions inside a kernel", ["-m", "warplens.intrakernel.example"], []),
}
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_CODE = re.compile(r"(^```.*?^```$)", re.DOTALL | re.MULTILINE)


def place(path: Path) -> str:
    """Return where a file of the checkout stands on the site, relative to its root."""
    if path in NAMES:
        return NAMES[path]
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    return f"files/{path.relative_to(ROOT).as_posix()}"


def relink(text: str, page: Path) -> str:
    """Make the links of a page lead to where their targets stand on the site; copy files that are no page."""

    def moved(match: re.Match[str]) -> str:
        target, _, anchor = match[2].partition("#")
        if "://" in target or not target:
            return match[0]
        path = (page.parent / target).resolve()
        if not path.is_file() or not path.is_relative_to(ROOT):
            sys.exit(f"{page.relative_to(ROOT)} links to {match[2]}, which is not a file of this checkout")
        there = place(path)
        if there.startswith("files/"):
            copy = PAGES / f"{there}.txt"  # a browser shows it, whatever the server thinks of its suffix
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
            there += ".txt"
        link = os.path.relpath(there, Path(place(page)).parent)
        return f"{match[1]}{link}{'#' + anchor if anchor else ''}{match[3]}"

    parts = _CODE.split(text)
    return "".join(part if index % 2 else _LINK.sub(moved, part) for index, part in enumerate(parts))


def copy_pages() -> None:
    """Copy every page and picture of the documentation."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    for path in [*sorted(DOCS.rglob("*")), *NAMES]:
        target = PAGES / place(path)
        if path.suffix == ".md":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(relink(path.read_text(encoding="utf-8"), path), encoding="utf-8")
        elif path.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def write_reference() -> None:
    """Make the reference pages from the code."""
    import reference_pages  # beside this file; imports the package, which `--install` need not have

    (PAGES / "reference").mkdir(exist_ok=True)
    for name, text in reference_pages.pages().items():
        (PAGES / "reference" / f"{name}.md").write_text(
            relink(text, DOCS / "reference" / f"{name}.md"), encoding="utf-8"
        )


def record_live() -> None:
    """Record each live example and write it as a page of HTML."""
    shutil.rmtree(WORK / "live", ignore_errors=True)
    (WORK / "live").mkdir(parents=True)
    (PAGES / "live").mkdir(parents=True)
    rows = []
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    command = [sys.executable, "-m", "warplens"]
    for name, (title, words, options) in LIVE.items():
        for word in words:
            if word.endswith(".py"):
                shutil.copy(ROOT / "examples" / word, WORK / "live")
        program = ["python", *(Path(word).name for word in words)]
        report = f"{name}.warplens"
        subprocess.run(
            [*command, "profile", "--light", "-q", *options, "-o", report, *program],
            cwd=WORK / "live",
            env=environment,
            check=True,
        )
        page = PAGES / "live" / f"{name}.html"
        subprocess.run(
            [*command, "export", "-q", "-t", "html", "-o", page, report],
            cwd=WORK / "live",
            env=environment,
            check=True,
        )
        rows.append(
            f"- [{title}](live/{name}.html): `{' '.join(program)}`, {page.stat().st_size / 1024:,.0f} KiB"
        )
    head = "# Live examples\n\nThe build of this site recorded these programs. `warplens export -t html` wrote each page, in one file.\n\n"
    (PAGES / "live.md").write_text(head + "\n".join(rows) + "\n", encoding="utf-8")


def draw_pictures() -> None:
    """Draw the screenshots of the guides anew, for the site alone; without Chromium those of git stay."""
    if shutil.which("chromium") is None:
        print("no Chromium here: the site has the pictures of docs/images")
        return
    command = [sys.executable, str(ROOT / "tools" / "guide_pictures.py"), "--out", str(PAGES / "images")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run(command, cwd=WORK, env=environment, check=True)


def generator() -> Path:
    """Return Zensical's command, installed into an environment for it."""
    folder = WORK / "env"
    command = folder / "bin" / "zensical"
    if not command.exists():
        venv.EnvBuilder(with_pip=True, clear=True).create(folder)
        subprocess.run(
            [folder / "bin" / "python", "-m", "pip", "install", "--quiet", REQUIREMENT], check=True
        )
    return command


def main() -> int:
    """Build the site; return Zensical's exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--install", action="store_true", help="install the generator, and build nothing")
    parser.add_argument("--pictures", action="store_true", help="draw the screenshots of the guides anew")
    options = parser.parse_args()
    if options.install:
        generator()
        return 0
    copy_pages()
    write_reference()
    record_live()
    if options.pictures:
        draw_pictures()
    return subprocess.run(
        [generator(), "build", "--clean", "--strict", "-f", "mkdocs.yml"], cwd=ROOT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
