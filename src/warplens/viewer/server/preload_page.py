"""Embeds the first API responses in the HTML, so that the page renders without a round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.viewer.answers.plain import encoded

if TYPE_CHECKING:
    from warplens.viewer.answers.answers import Answers

_END = b"</body>"
_MOST = 2 << 20  # bytes; rows of thousands of ranks come after the page


def preloaded(page: bytes, answers: Answers) -> bytes:
    """Return `page` with `Meta` and the rows of all reports as JSON.

    As it is while a report is being opened, or where that is too much.
    """
    before, end, after = page.rpartition(_END)
    reports = list(answers.view.reports)
    generations = [opened.generation for opened in reports]
    trees = [opened.tree_now for opened in reports]
    # Nobody waits for the page: while indexes are being made, or where they cannot be, it asks by itself and says what it hears.
    if not end or any(tree is None for tree in trees):
        return page
    meta = answers.meta()
    if [report["generation"] for report in meta["reports"]] != generations:
        return page  # opened anew meanwhile: these rows are of the time before
    first = encoded({"meta": meta, "tracks": trees})
    if len(first) > _MOST:
        return page
    # The only character that could end the element, or begin a comment in it.
    block = first.replace(b"<", b"\\u003c")
    return b"".join((before, b'<script type="application/json" id="first">', block, b"</script>", end, after))
