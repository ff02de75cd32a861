"""One HTML file from the built page and the answers of a server.

It runs from disk, without any request.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import re
from collections.abc import Mapping

from warplens.errors import UsageError
from warplens.viewer.bundle import File

_OUTSIDE = re.compile(
    r'<script\b[^>]*\bsrc="(?P<script>[^"]+)"[^>]*>\s*</script>|<link\b[^>]*\brel="(?P<link>[^"]+)"[^>]*>|<title>(?P<title>[^<]*)</title>'
)
_HREF = re.compile(r'\bhref="([^"]+)"')
_LEVEL = 6  # a sixth of the time of 9, and 2 % more bytes
_BREAKS_OUT = re.compile(r"<(?=/script|!--)", re.IGNORECASE)


def single_page(files: Mapping[str, File], title: str, answers: Mapping[str, bytes]) -> bytes:
    """Return the page of `files(single=True)` with everything in it.

    `answers`: by the keys that `web/src/data/embedded.ts` asks for.

    Answers are gzipped and in base64, so that no name of a report is ever read as HTML. Raises UsageError if the page is not built.
    """
    if len(files) == 1:
        raise UsageError("the page is not built in this checkout. Install Node, then run: make web.")
    hashes: dict[str, list[str]] = {"script-src": [], "style-src": []}
    text = files["/"].content.decode()

    def inside(match: re.Match[str]) -> str:
        if match["title"] is not None:
            return f"<title>{html.escape(title)}</title>"
        if match["script"] is not None:
            return _inline(
                "script",
                _safe_script(_content(files, match["script"])),
                "script-src",
                hashes=hashes,
                attributes=' type="module"',
            )
        href = _HREF.search(match[0])
        if match["link"] == "stylesheet" and href is not None:
            return _inline("style", _safe_style(_content(files, href[1])), "style-src", hashes=hashes)
        if match["link"] == "icon" and href is not None:
            icon = files[_path(href[1])]
            return (
                f'<link rel="icon" href="data:{icon.kind};base64,{base64.b64encode(icon.content).decode()}">'
            )
        return ""  # hints of what to fetch early

    text = _OUTSIDE.sub(inside, text)
    allowed = "; ".join(
        f"{kind} {' '.join(digests) or chr(39) + 'none' + chr(39)}" for kind, digests in hashes.items()
    )
    policy = (
        f"default-src 'none'; {allowed}; img-src data:; font-src data:; base-uri 'none'; form-action 'none'"
    )
    head, opening, rest = text.partition("<head>")
    body, closing, tail = rest.rpartition("</body>")
    if not opening or not closing:
        raise UsageError("the built page belongs to another version of warplens. Rebuild it: make web.")
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    return "".join(
        (head, opening, meta, body, *(_block(key, answer) for key, answer in answers.items()), closing, tail)
    ).encode()


def packed(answer: bytes) -> str:
    """Return an answer as the page holds it. The same answer gives the same text."""
    return base64.b64encode(gzip.compress(answer, _LEVEL, mtime=0)).decode()


def _block(key: str, answer: bytes) -> str:
    return f'<script type="application/octet-stream" data-answer="{html.escape(key)}">{packed(answer)}</script>\n'


def _inline(tag: str, content: str, kind: str, hashes: dict[str, list[str]], attributes: str = "") -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
    hashes[kind].append(f"'sha256-{digest}'")
    return f"<{tag}{attributes}>{content}</{tag}>"


def _path(reference: str) -> str:
    return "/" + reference.removeprefix(".").lstrip("/")


def _content(files: Mapping[str, File], reference: str) -> str:
    file = files.get(_path(reference))
    if file is None:
        raise UsageError(f"the built page lacks {reference}. Rebuild it: make web.")
    # What an HTML parser would change must not be there, or the text is not the one that was hashed.
    return file.content.decode().replace("\r\n", "\n").replace("\r", "\n")


def _safe_script(text: str) -> str:
    """Return an equal script that cannot end its HTML element.

    Characters that could are in strings and patterns only.
    """
    return _BREAKS_OUT.sub(r"\\x3c", text).replace("\0", "\\x00")


def _safe_style(text: str) -> str:
    return re.sub(r"</(?=style)", r"<\\/", text, flags=re.IGNORECASE).replace("\0", "\ufffd")
