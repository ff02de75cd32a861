"""The page with its first answers in it: what it would ask for before it can show anything need not be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpline.viewer.plain import encoded

if TYPE_CHECKING:
    from warpline.viewer.answers import Answers

_END = b"</body>"
_MOST = 2 << 20  # bytes; rows of thousands of ranks come after the page


def arriving(page: bytes, answers: Answers) -> bytes:
    """Return `page` with `Meta` and the rows of all reports as JSON; as it is while a report is being opened, or where that is too much."""
    meta = answers.meta()  # first: a report that is opened anew meanwhile is told as older than its rows, and asked for again
    trees = [opened.tree_now for opened in answers.view.reports]
    before, end, after = page.rpartition(_END)
    if not end or any(tree is None for tree in trees):
        return page
    first = encoded({"meta": meta, "tracks": trees})
    if len(first) > _MOST:
        return page
    # The only character that could end the element, or begin a comment in it.
    block = first.replace(b"<", b"\\u003c")
    return b"".join((before, b'<script type="application/json" id="first">', block, b"</script>", end, after))
