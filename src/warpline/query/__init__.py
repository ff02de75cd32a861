"""Ask a report: tables as Arrow, SQL, selections in time and by NVTX range, interval algebra."""

from __future__ import annotations

from warpline.query.report import Report, open
from warpline.query.selection import Selection, selected_ranges

__all__ = ["Report", "Selection", "open", "selected_ranges"]
